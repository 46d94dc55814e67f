package mongodb

import (
	"errors"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"countersign/internal/action"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/provider/direct"
)

// judge says what became of a write.
//
//	not one byte of the command left              → failed: nothing was sent
//	ok:1 and n:1                                  → succeeded (the write concern asked for a majority)
//	ok:1 and n:0                                  → failed: the document was not there any more, or not as the call demands
//	writeErrors                                   → failed: the one statement was not applied
//	writeConcernError alone                       → uncertain: one server has it, and it may be rolled back
//	ok:0 with a code that precedes every write    → failed
//	ok:0 with any other code, a broken connection,
//	a time out, an answer that cannot be read     → uncertain
func (c change) judge(l *direct.Link, login egress.Login, w *watch, reply bson.Raw, err error, before string) action.Outcome {
	evidence, sent := w.seen()
	evidence.Before = before
	var refused mongo.WriteException
	var command mongo.CommandError
	switch {
	case !sent:
		return unsent(login, w, err)
	case err == nil:
		evidence.Complete, evidence.Transport = true, ""
		return c.answered(l, reply, evidence)
	case errors.As(err, &refused):
		evidence.Complete, evidence.Transport = true, ""
		return c.refusedBy(l, login, refused, evidence)
	case errors.As(err, &command) && command.Code != 0 && !mongo.IsNetworkError(err):
		evidence.Complete, evidence.Transport = true, ""
		return answeredWithout(l, login, command, evidence)
	case mongo.IsTimeout(err):
		evidence.Transport = string(egress.TimedOut)
		return action.Uncertain(fault.UpstreamTimeout, "The command was sent and no answer came in time.", evidence)
	}
	return action.Uncertain(fault.UpstreamError, "The command was sent and the connection ended before an answer came.", evidence)
}

func unsent(login egress.Login, w *watch, err error) action.Outcome {
	if errors.Is(err, egress.ErrLate) {
		return action.Failed(fault.UpstreamTimeout, "The moment until which it might be sent has passed. Nothing was sent.", action.Evidence{Transport: string(egress.TimedOut)})
	}
	return direct.Unsent(explained(login, err))
}

func (c change) answered(l *direct.Link, reply bson.Raw, e action.Evidence) action.Outcome {
	n, ok := reply.Lookup("n").AsInt64OK()
	switch {
	case !ok:
		return action.Uncertain(fault.UpstreamError, "The database answered without saying how many documents it changed.", e)
	case n == 0:
		return action.Failed(fault.UpstreamError, nothingMatches+" Nothing was changed.", e)
	}
	out := map[string]any{"documents": 1, "outcome": c.verb}
	if id, err := shown(bson.D{{Key: "_id", Value: c.id}}); err == nil && c.insert {
		out["inserted"] = id
	}
	if changed, ok := reply.Lookup("nModified").AsInt64OK(); ok && changed == 0 {
		out["outcome"] = "already as the call would leave it"
	}
	answer, err := scrubbed(l, out)
	if err != nil {
		answer = direct.Answer{Text: "Applied."}
	}
	return action.Succeeded(l.Kept(answer, false), e)
}

// refusedBy is an answer that lists what went wrong with the one statement.
func (c change) refusedBy(l *direct.Link, login egress.Login, x mongo.WriteException, e action.Evidence) action.Outcome {
	if len(x.WriteErrors) > 0 {
		first := x.WriteErrors[0]
		e.ProviderCode = "error " + strconv.Itoa(first.Code)
		words := "The database refused the change (error " + strconv.Itoa(first.Code) + "); nothing was applied."
		if first.Code == 11000 {
			words = "The database refused it: a document with the same unique value is there already. Nothing was applied."
		}
		return action.Failed(fault.UpstreamError, words, e).WithAnswer(l.Kept(direct.Answer{Text: "MongoDB: " + said(login, first.Message)}, true))
	}
	e.ProviderCode = "write concern"
	return action.Uncertain(fault.UpstreamError, "One server has the change, but a majority has not confirmed it: it may still be undone.", e)
}

// answeredWithout is an answer that says that the command failed.
func answeredWithout(l *direct.Link, login egress.Login, x mongo.CommandError, e action.Evidence) action.Outcome {
	e.ProviderCode = "error " + strconv.Itoa(int(x.Code))
	kept := l.Kept(direct.Answer{Text: "MongoDB: " + said(login, x.Message)}, true)
	if slices.Contains(definite, int(x.Code)) {
		words := "The database refused the command (" + e.ProviderCode + "); nothing was applied."
		if x.Code == unauthorized {
			words = "The database user of this connection may not write there; nothing was applied."
		}
		return action.Failed(fault.UpstreamError, words, e).WithAnswer(kept)
	}
	return action.Uncertain(fault.UpstreamError, "The database answered with an error that does not say whether the change was applied ("+e.ProviderCode+").", e).WithAnswer(kept)
}
