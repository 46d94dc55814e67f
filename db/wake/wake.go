// Package wake owns the wake-ups: that an approved action is noticed soon, also when the process that approved it is gone, and that what
// time has ended is swept. It runs on River and never owns the truth: a job that runs twice finds the claim taken and does nothing, and
// no job is ever repeated in order to send again.
package wake

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"countersign/internal/action"
	"countersign/internal/identity"
)

// sweepEvery is how often time is looked at: leases that ended, actions that expired, approved ones nobody sends.
const sweepEvery = 2 * time.Second

// leftBehind is how many approved actions one sweep wakes.
const leftBehind = 100

// Dispatcher sends one approved action. dispatch.Dispatcher implements it.
type Dispatcher interface {
	Dispatch(ctx context.Context, org identity.OrgID, id action.ID) (action.Action, error)
}

// Sweeper ends what time has ended. action.Claimer has these.
type Sweeper interface {
	ExpireDue(ctx context.Context) (int, error)
	LeasesEnded(ctx context.Context) (int, error)
	Approved(ctx context.Context, limit int) ([]action.Waiting, error)
}

// Reconciler finds out what became of uncertain actions. reconcile.Reconciler implements it.
type Reconciler interface {
	Due(ctx context.Context, limit int) ([]action.Waiting, error)
	Probe(ctx context.Context, org identity.OrgID, id action.ID) error
}

// With adds to a queue.
type With func(q *Queue, workers *river.Workers)

// WithReconciler has uncertain actions probed when their turn comes.
func WithReconciler(r Reconciler, log *slog.Logger) With {
	return func(q *Queue, workers *river.Workers) {
		q.reconciler = r
		river.AddWorker(workers, &prober{reconciler: r, log: log})
	}
}

// Queue wakes dispatchers and reconcilers.
type Queue struct {
	client     *river.Client[pgx.Tx]
	reconciler Reconciler // nil: nobody probes
}

type probe struct {
	Org identity.OrgID `json:"org"`
	ID  action.ID      `json:"id" river:"unique"`
}

func (probe) Kind() string { return "action_probe" }

type send struct {
	Org identity.OrgID `json:"org"`
	ID  action.ID      `json:"id" river:"unique"`
}

func (send) Kind() string { return "action_send" }

type sweep struct{}

func (sweep) Kind() string { return "action_sweep" }

// pending are the states in which a second wake-up for one action is pointless.
var pending = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled, rivertype.JobStateRetryable,
}

// New makes a queue over a pool. Start begins work.
func New(pool *pgxpool.Pool, d Dispatcher, s Sweeper, log *slog.Logger, more ...With) (*Queue, error) {
	q := &Queue{}
	workers := river.NewWorkers()
	river.AddWorker(workers, &sender{dispatcher: d, log: log})
	river.AddWorker(workers, &broom{sweeper: s, queue: q, log: log})
	for _, with := range more {
		with(q, workers)
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 32}, "sweep": {MaxWorkers: 1}, "probe": {MaxWorkers: 4}},
		Workers:                     workers,
		JobTimeout:                  -1, // a dispatch ends by its own deadlines; River must not cancel what has been sent
		MaxAttempts:                 1,
		CompletedJobRetentionPeriod: 10 * time.Minute,
		FetchCooldown:               10 * time.Millisecond,
		FetchPollInterval:           500 * time.Millisecond,
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(sweepEvery), func() (river.JobArgs, *river.InsertOpts) {
			return sweep{}, &river.InsertOpts{Queue: "sweep", UniqueOpts: river.UniqueOpts{ByState: pending}}
		}, &river.PeriodicJobOpts{RunOnStart: true})},
		Logger: slog.New(quiet{log.Handler()}),
	})
	q.client = client
	return q, err
}

// Start begins to work. Stop lets what is being sent finish, up to ctx.
func (q *Queue) Start(ctx context.Context) error { return q.client.Start(context.WithoutCancel(ctx)) }

// Stop ends the work in order.
func (q *Queue) Stop(ctx context.Context) error { return q.client.Stop(ctx) }

// Wake asks for an approved action to be sent soon. When it cannot be written the sweep finds the action a moment later.
func (q *Queue) Wake(ctx context.Context, org identity.OrgID, id action.ID) error {
	_, err := q.client.Insert(ctx, send{Org: org, ID: id}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: pending}})
	return err
}

type sender struct {
	river.WorkerDefaults[send]
	dispatcher Dispatcher
	log        *slog.Logger
}

// Work never answers an error: what could not be prepared stays approved, and the sweep wakes it again until it expires.
func (w *sender) Work(ctx context.Context, job *river.Job[send]) error {
	_, err := w.dispatcher.Dispatch(ctx, job.Args.Org, job.Args.ID)
	if err != nil && !errors.Is(err, action.NotClaimable) {
		w.log.WarnContext(ctx, "action not sent yet", "action", job.Args.ID, "error", err)
	}
	return nil
}

type broom struct {
	river.WorkerDefaults[sweep]
	sweeper Sweeper
	queue   *Queue
	log     *slog.Logger
}

func (w *broom) Work(ctx context.Context, _ *river.Job[sweep]) error {
	for _, part := range []func(context.Context) (int, error){w.sweeper.LeasesEnded, w.sweeper.ExpireDue} {
		if _, err := part(ctx); err != nil {
			w.log.WarnContext(ctx, "sweep failed; the next one goes on", "error", err)
		}
	}
	w.queue.wakeProbes(ctx, w.log)
	waiting, err := w.sweeper.Approved(ctx, leftBehind)
	if err != nil {
		w.log.WarnContext(ctx, "approved actions could not be listed; the next sweep goes on", "error", err)
		return nil
	}
	for _, a := range waiting {
		if err := w.queue.Wake(ctx, a.Org, a.ID); err != nil {
			return nil // the database is away; the next sweep finds the same ones
		}
	}
	return nil
}

// wakeProbes asks for what is due to be probed. What cannot be asked for now is still due at the next sweep.
func (q *Queue) wakeProbes(ctx context.Context, log *slog.Logger) {
	if q.reconciler == nil {
		return
	}
	due, err := q.reconciler.Due(ctx, leftBehind)
	if err != nil {
		log.WarnContext(ctx, "uncertain actions could not be listed; the next sweep goes on", "error", err)
		return
	}
	for _, a := range due {
		if _, err := q.client.Insert(ctx, probe{Org: a.Org, ID: a.ID}, &river.InsertOpts{Queue: "probe", UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: pending}}); err != nil {
			return
		}
	}
}

type prober struct {
	river.WorkerDefaults[probe]
	reconciler Reconciler
	log        *slog.Logger
}

// Work never answers an error: the action stays uncertain, and its next turn comes.
func (w *prober) Work(ctx context.Context, job *river.Job[probe]) error {
	if err := w.reconciler.Probe(ctx, job.Args.Org, job.Args.ID); err != nil {
		w.log.WarnContext(ctx, "uncertain action not probed; its next turn comes", "action", job.Args.ID, "error", err)
	}
	return nil
}

// quiet lets River's warnings and errors through; its own coming and going is no news.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}
