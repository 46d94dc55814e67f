package crm

import (
	"slices"
	"time"
)

// mode is how a call goes wrong.
type mode string

// The modes. In the first four the effect is applied and the answer is lost; only the journal tells.
const (
	applyThenHang     mode = "apply_then_hang"     // not one byte of an answer
	applyThenReset    mode = "apply_then_reset"    // TCP reset in place of an answer
	applyThen500      mode = "apply_then_500"      // the answer is an internal error
	applyThenTruncate mode = "apply_then_truncate" // half of the answer, then the end of the connection
	reject            mode = "reject"              // a definite tool error; nothing applied
	hang              mode = "hang"                // not one byte, nothing applied
	reset             mode = "reset"               // TCP reset, nothing applied
	slow              mode = "slow"                // applied after a while, then answered, even if the caller has left
	lateApply         mode = "late_apply"          // TCP reset at once; applied a while later
)

var modes = []mode{applyThenHang, applyThenReset, applyThen500, applyThenTruncate, reject, hang, reset, slow, lateApply}

// Bounds of an arming, and its defaults.
const (
	mostTimes    = 1000
	longestDelay = 10 * time.Minute
	defaultDelay = 2 * time.Second
)

// arming is a fault that waits for the next calls of a tool.
type arming struct {
	tool  string
	mode  mode
	times int           // calls it still breaks
	delay time.Duration // slow, late_apply: until the effect. hang modes: how long at most; 0 is for as long as the caller stays
}

// holdsBack reports whether the effect must not happen while the call is answered.
func (m mode) holdsBack() bool { return slices.Contains([]mode{reject, hang, reset, lateApply}, m) }

// breaksAnswer reports whether the connection gets something other than the protocol's answer.
func (m mode) breaksAnswer() bool { return m != reject && m != slow }

// delayed reports whether the effect comes after a while.
func (m mode) delayed() bool { return m == slow || m == lateApply }
