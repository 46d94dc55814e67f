package crm

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The two tools that take time or space instead of touching the records.
const (
	toolWait   = "wait"
	toolReport = "report_export"
)

const (
	longestWait     = 120 * time.Second
	largestReportKB = 20480
)

// waiting reads the arguments of wait.
func waiting(args json.RawMessage) (time.Duration, error) {
	in, err := decode[struct {
		Seconds *float64 `json:"seconds"`
	}](args)
	if err != nil {
		return 0, err
	}
	if in.Seconds == nil || *in.Seconds < 0 || *in.Seconds > longestWait.Seconds() {
		return 0, invalid("seconds is between 0 and 120.")
	}
	return time.Duration(*in.Seconds * float64(time.Second)), nil
}

// report answers the text of an activity report of exactly kilobytes × 1024 bytes, the same for the same size.
func report(args json.RawMessage) (text string, kilobytes int, err error) {
	in, err := decode[struct {
		Kilobytes int `json:"kilobytes"`
	}](args)
	if err != nil {
		return "", 0, err
	}
	if in.Kilobytes < 1 || in.Kilobytes > largestReportKB {
		return "", 0, invalid("kilobytes is between 1 and 20480.")
	}
	size := in.Kilobytes * 1024
	var b strings.Builder
	b.Grow(size + 64)
	b.WriteString("row,contact_id,event,on\n")
	events := []string{"email_opened", "call_logged", "invoice_sent", "deal_viewed"}
	for row := 1; b.Len() < size; row++ {
		fmt.Fprintf(&b, "%07d,c_%d,%s,2026-%02d-%02d\n", row, 1001+row%12, events[row%len(events)], 1+row%12, 1+row%28)
	}
	return b.String()[:size], in.Kilobytes, nil
}
