// Package wake owns the wake-ups: that an approved action is noticed soon, also when the process that approved it is gone, and that what
// time has ended is swept. A wake-up goes to a worker of this process at once; what a process leaves behind is found by the sweep and
// shared out by River. None of them owns the truth: who comes second finds the claim taken and does nothing, and no job is ever repeated
// in order to send again.
package wake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

// How many wake-ups this process keeps for itself. What is more goes to River, which all replicas share.
const (
	nearby      = 16  // workers
	nearbyQueue = 256 // waiting for one
)

// Queue wakes dispatchers and reconcilers.
type Queue struct {
	client     *river.Client[pgx.Tx]
	reconciler Reconciler // nil: nobody probes
	sender     *sender

	mu      sync.RWMutex // guards stopped, and that nothing is put into near after it
	stopped bool
	near    chan send
	workers sync.WaitGroup
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

// A job of a process that was killed stays "running" for as long as River gives it, an hour. Were a wake-up pointless for all that time,
// nothing would be swept and that action not be sent. So what is asked for again is asked for anew once this has passed; who comes second
// finds the claim taken.
const forgetAfter = 30 * time.Second

// A probe takes its turn in the database, where a second one finds it taken, so that a lost one need not be waited for longer than the
// first pause between two.
const forgetProbeAfter = 4 * time.Second

// pending are the states in which a second wake-up for one action is pointless.
var pending = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled, rivertype.JobStateRetryable,
}

// New makes a queue over a pool. Start begins work.
func New(pool *pgxpool.Pool, d Dispatcher, s Sweeper, log *slog.Logger, more ...With) (*Queue, error) {
	q := &Queue{sender: &sender{dispatcher: d, log: log}, near: make(chan send, nearbyQueue)}
	workers := river.NewWorkers()
	river.AddWorker(workers, q.sender)
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
			return sweep{}, &river.InsertOpts{Queue: "sweep", UniqueOpts: river.UniqueOpts{ByPeriod: sweepEvery}}
		}, &river.PeriodicJobOpts{RunOnStart: true})},
		Logger: slog.New(quiet{log.Handler()}),
	})
	q.client = client
	return q, err
}

// Start begins to work. Stop lets what is being sent finish, up to ctx.
func (q *Queue) Start(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for range nearby {
		q.workers.Go(func() {
			for s := range q.near {
				q.sender.send(ctx, s)
			}
		})
	}
	return q.client.Start(ctx)
}

// Stop ends the work in order. What still waits for a worker of this process is approved and stays so; any replica's sweep finds it.
func (q *Queue) Stop(ctx context.Context) error {
	q.mu.Lock()
	if !q.stopped {
		q.stopped = true
		close(q.near)
		for range q.near { // leaves it to the sweep
		}
	}
	q.mu.Unlock()
	idle := make(chan struct{})
	go func() { q.workers.Wait(); close(idle) }()
	err := q.client.Stop(ctx)
	select {
	case <-idle:
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// Wake asks for an approved action to be sent soon: by this process, or by any when it is busy. When that cannot be written the sweep
// finds the action a moment later.
func (q *Queue) Wake(ctx context.Context, org identity.OrgID, id action.ID) error {
	if q.hand(send{Org: org, ID: id}) {
		return nil
	}
	return q.enqueue(ctx, org, id)
}

// hand gives a wake-up to a worker of this process, if it has room.
func (q *Queue) hand(s send) bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.stopped {
		return false
	}
	select {
	case q.near <- s:
		return true
	default:
		return false
	}
}

func (q *Queue) enqueue(ctx context.Context, org identity.OrgID, id action.ID) error {
	_, err := q.client.Insert(ctx, send{Org: org, ID: id}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: forgetAfter, ByState: pending}})
	return err
}

type sender struct {
	river.WorkerDefaults[send]
	dispatcher Dispatcher
	log        *slog.Logger
}

// Work never answers an error: what could not be prepared stays approved, and the sweep wakes it again until it expires.
func (w *sender) Work(ctx context.Context, job *river.Job[send]) error {
	w.send(ctx, job.Args)
	return nil
}

// send never panics: a worker of this process has nobody above it.
func (w *sender) send(ctx context.Context, s send) {
	defer func() {
		if r := recover(); r != nil {
			w.log.ErrorContext(ctx, "sending panicked", "action", s.ID, "panic", fmt.Sprintf("%T", r))
		}
	}()
	_, err := w.dispatcher.Dispatch(ctx, s.Org, s.ID)
	if err != nil && !errors.Is(err, action.NotClaimable) {
		w.log.WarnContext(ctx, "action not sent yet", "action", s.ID, "error", err)
	}
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
		if err := w.queue.enqueue(ctx, a.Org, a.ID); err != nil {
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
		if _, err := q.client.Insert(ctx, probe{Org: a.Org, ID: a.ID}, &river.InsertOpts{Queue: "probe", UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: forgetProbeAfter, ByState: pending}}); err != nil {
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
