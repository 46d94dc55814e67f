//go:build !linux

package cli

import (
	"io"
	"os"

	"countersign/internal/provider/cli/sandbox"
)

func sealed(string, io.Reader) (*os.File, error) { return nil, sandbox.ErrUnable }

func nodeFile() (*os.File, error) { return nil, sandbox.ErrUnable }

func touchOf(os.FileInfo) (inode uint64, at int64) { return 0, 0 }
