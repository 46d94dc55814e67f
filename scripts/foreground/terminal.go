//go:build unix

package main

import "golang.org/x/sys/unix"

func foregroundGroup(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }

func setForegroundGroup(fd uintptr, group int) error {
	return unix.IoctlSetPointerInt(int(fd), unix.TIOCSPGRP, group)
}
