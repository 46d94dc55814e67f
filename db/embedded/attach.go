package embedded

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// Attach finds the cluster that a running server has started in a data directory, for operator commands beside it. It answers false when
// none answers; then the caller may start one of its own.
func Attach(ctx context.Context, dataDir string) (Access, bool) {
	data, err := absolute(dataDir)
	if err != nil {
		return Access{}, false
	}
	p := &place{data: data, root: filepath.Join(data, "pg")}
	p.cluster = filepath.Join(p.root, "cluster")
	if _, err := os.Stat(filepath.Join(p.root, "secret")); err != nil {
		return Access{}, false
	}
	if p.socket, err = socketDir(p.root); err != nil {
		return Access{}, false
	}
	access, err := p.access()
	if err != nil {
		return Access{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, access.DSN(Database))
	if err != nil {
		return Access{}, false
	}
	return access, conn.Close(ctx) == nil
}

// Hold takes the data directory without starting anything, so that its files stand still until release is called. A directory in use is
// refused in a sentence.
func Hold(ctx context.Context, dataDir string) (release func(), err error) {
	p, err := openPlace(dataDir)
	if err != nil {
		return nil, err
	}
	if err := p.awaitVacancy(ctx); err != nil {
		p.close()
		return nil, err
	}
	return p.close, nil
}
