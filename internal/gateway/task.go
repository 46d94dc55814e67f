package gateway

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
)

// TaskStatus is where a task stands, in the words of the MCP extension io.modelcontextprotocol/tasks.
type TaskStatus string

// The statuses used here. The extension's input_required is never one of them: what an action waits for is a person on our own pages,
// and nothing an agent's client sends may stand for that person.
const (
	TaskWorking   TaskStatus = "working"
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskCancelled TaskStatus = "cancelled"
)

// Task is an action in the shape of that extension. It is a view: the action's id is the task's, and nothing else is stored.
type Task struct {
	ID             action.ID       `json:"taskId"`
	Status         TaskStatus      `json:"status"`
	StatusMessage  string          `json:"statusMessage,omitempty"`
	CreatedAt      string          `json:"createdAt"`
	LastUpdatedAt  string          `json:"lastUpdatedAt"`
	TTLMS          int64           `json:"ttlMs"` // from creation until the run's token ends, and with it the way to ask
	PollIntervalMS int             `json:"pollIntervalMs,omitempty"`
	Result         json.RawMessage `json:"result,omitempty"` // of a completed one: what the call itself would be answered now
	Error          *TaskError      `json:"error,omitempty"`  // of a failed one
}

// taskTime is RFC 3339 to the millisecond: an action may change twice within a second.
const taskTime = "2006-01-02T15:04:05.000Z07:00"

// TaskError is the JSON-RPC error by which the upstream refused before it did anything.
type TaskError struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Data    refused `json:"data"`
}

// CallOrTask answers like Call, for a caller that follows tasks: where the result is still to come, with the task in place of a result.
func (g *Gateway) CallOrTask(ctx context.Context, l capability.Live, only connector.Key, c Call) (json.RawMessage, *Task, error) {
	var waiting action.Action
	c.waiting = &waiting
	result, err := g.Call(ctx, l, only, c)
	if err != nil || waiting.ID == "" {
		return result, nil, err
	}
	t, err := g.taskOf(l, waiting)
	return nil, &t, err
}

// Task finds a task of this run. Another run's looks like none.
func (g *Gateway) Task(ctx context.Context, l capability.Live, id action.ID) (Task, error) {
	a, err := g.ofRun(ctx, l, id)
	if err != nil {
		return Task{}, err
	}
	return g.taskOf(l, a)
}

// CancelTask takes back the action of a task that has not been sent yet. The extension makes cancelling a wish: what is too late for it
// is no error, and the task says what became of it.
func (g *Gateway) CancelTask(ctx context.Context, l capability.Live, id action.ID) error {
	if _, err := g.ofRun(ctx, l, id); err != nil {
		return err
	}
	_, err := g.Actions.CancelByRun(ctx, l.Org.ID, l.Run.ID, id)
	if f, ok := fault.As(err); ok && f.Kind == fault.Conflict {
		return nil
	}
	return err
}

// waits reports whether the answer to a call is still to come.
func waits(s action.State) bool {
	return s == action.StateStaged || s == action.StateApproved || s == action.StateExecuting
}

// taskOf is the whole mapping of states. What ended in a tool result, also in one that says "denied", is completed: the extension keeps
// failed for JSON-RPC errors. An uncertain action is working, since a terminal status may never change and the truth is still to come.
func (g *Gateway) taskOf(l capability.Live, a action.Action) (Task, error) {
	t := Task{
		ID: a.ID, Status: TaskWorking, CreatedAt: a.RequestedAt.UTC().Format(taskTime), LastUpdatedAt: lastChange(a).UTC().Format(taskTime),
		TTLMS: max(1, l.Run.ExpiresAt.Sub(a.RequestedAt).Milliseconds()),
	}
	switch a.State {
	case action.StateStaged:
		t.PollIntervalMS, t.StatusMessage = pollStaged, "NOT EXECUTED. A person's approval is awaited at "+g.approvalURL(a)+" until "+stamp(a.ExpiresAt)+"."
	case action.StateApproved, action.StateExecuting:
		t.PollIntervalMS, t.StatusMessage = pollSoon, sentenceOf(a)
	case action.StateUncertain:
		t.PollIntervalMS, t.StatusMessage = pollStaged, sentenceOf(a)
	case action.StateCancelled:
		t.Status, t.StatusMessage = TaskCancelled, join("This was cancelled; nothing was sent.", first(a.ErrorSentence, a.Reason))
	default:
		if e := protocolError(a); e != nil {
			t.Status, t.StatusMessage, t.Error = TaskFailed, a.ErrorSentence, e
			return t, nil
		}
		result, err := g.standing(a)
		t.Status, t.StatusMessage, t.Result = TaskCompleted, sentenceOf(a), result
		return t, err
	}
	return t, nil
}

// protocolError is the JSON-RPC error that an action failed by; nil where it did not end by one. Their codes are negative, which no other
// provider's code is.
func protocolError(a action.Action) *TaskError {
	if a.State != action.StateFailed || a.Evidence == nil {
		return nil
	}
	code, err := strconv.Atoi(a.Evidence.ProviderCode)
	if err != nil || code >= 0 {
		return nil
	}
	return &TaskError{Code: code, Message: a.ErrorSentence, Data: refused{fault.Code(a.ErrorCode), a.ErrorSentence, nothingApplied}}
}

// lastChange is the newest of the times an action carries.
func lastChange(a action.Action) time.Time {
	at := a.RequestedAt
	for _, t := range []*time.Time{a.DecidedAt, a.ClaimedAt, a.FinishedAt} {
		if t != nil && t.After(at) {
			at = *t
		}
	}
	return at
}
