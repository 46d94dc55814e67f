package admin

import (
	"encoding/csv"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"countersign/internal/audit"
)

// exportBatch is how many entries are read at a time.
const exportBatch = 500

// Export writes every entry that fits the filter as CSV, newest first, without holding them in memory. When reading fails half way, the
// connection is broken off: a file that merely ends would pass for a whole one.
func (a *Audit) Export(r *Request) error {
	typed, filter := readFilter(r.QueryParams())
	if len(typed.Errors) > 0 {
		return errFilter
	}
	filter.Limit = exportBatch
	batch, err := a.Trail.Entries(r.Ctx(), r.Org(), filter)
	if err != nil {
		return err
	}
	h := r.Response().Header()
	h.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	h.Set(echo.HeaderContentDisposition, `attachment; filename="audit-`+time.Now().UTC().Format("20060102-150405")+`.csv"`)
	r.Response().WriteHeader(http.StatusOK)
	w := csv.NewWriter(r.Response())
	_ = w.Write([]string{"entry", "position", "time", "actor_kind", "actor_id", "actor", "event", "object_kind", "object", "args_digest", "facts", "seal"})
	for {
		for _, e := range batch {
			_ = w.Write(csvRow(e))
		}
		w.Flush()
		if w.Error() != nil {
			return nil // the reader went away
		}
		if len(batch) < exportBatch {
			return nil
		}
		filter.Before = batch[len(batch)-1].ID
		if batch, err = a.Trail.Entries(r.Ctx(), r.Org(), filter); err != nil {
			slog.ErrorContext(r.Ctx(), "export broken off", "cause", err)
			panic(http.ErrAbortHandler)
		}
	}
}

func csvRow(e audit.Recorded) []string {
	facts := make([]string, len(e.Facts))
	for i, f := range e.Facts {
		facts[i] = f.Name + "=" + f.Value
	}
	position := ""
	if e.Seq > 0 {
		position = strconv.FormatInt(e.Seq, 10)
	}
	row := []string{
		strconv.FormatInt(e.ID, 10), position, e.At.UTC().Format(time.RFC3339Nano), string(e.Actor.Kind), e.Actor.ID, e.Actor.Name,
		string(e.Event), e.Object.Kind, e.Object.ID, e.Digest, strings.Join(facts, "; "), hex.EncodeToString(e.MAC),
	}
	for i := range row {
		row[i] = inert(row[i])
	}
	return row
}

// inert keeps a spreadsheet from running a cell: somebody's name may be "=HYPERLINK(…)". An apostrophe in front makes it text, also
// where blanks or a line break stand before the sign.
func inert(cell string) string {
	if t := strings.TrimLeft(cell, " \t\r\n\u00a0\ufeff"); t != "" && strings.ContainsRune("=+-@|%＝＋－＠", []rune(t)[0]) || cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
