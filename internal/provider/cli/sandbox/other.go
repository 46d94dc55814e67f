//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Run refuses: what holds a program is Linux.
func Run(context.Context, Box) (End, error) {
	return End{}, fmt.Errorf("%w: vendors' commands run on Linux only, and this is %s", ErrUnable, runtime.GOOS)
}

// Lacks says what this machine cannot hold a program to.
func Lacks() []string {
	return []string{"Vendors' commands run on Linux only: connections of that kind are unavailable on this machine."}
}

func inside() {}
