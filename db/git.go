package db

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/gitgateway"
	"countersign/internal/identity"
)

// Git keeps the packs of pushes, in pieces, and which repository each name of a connection means.
type Git struct{ *DB }

// pieceBytes is the size of all pieces of a pack but the last.
const pieceBytes = 1 << 20

// packLife is how long a pack is kept that nothing waits for: a push that ended may be asked for again.
const packLife = 7 * 24 * time.Hour

// Keep stores a pack as it was received, with what a person reads of it. One that is there already is left as it is.
func (s Git) Keep(ctx context.Context, org identity.OrgID, key connector.Key, p gitgateway.Pack, diff string, from io.Reader) error {
	pieces := int32((p.Bytes + pieceBytes - 1) / pieceBytes)
	return s.inOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.GitPackBegin(ctx, rows.GitPackBeginParams{Digest: p.Digest, Bytes: p.Bytes, Pieces: pieces, Diff: storable(diff), OrgID: string(org), Key: string(key)})
		if err != nil {
			return err
		}
		if n == 0 { // there already, or no such connection
			_, err := q.GitPack(ctx, string(org), string(key), p.Digest)
			return orAbsent(err, "connection")
		}
		buffer := make([]byte, pieceBytes)
		for piece := range pieces {
			n, err := io.ReadFull(from, buffer)
			if err != nil && (piece != pieces-1 || !errors.Is(err, io.ErrUnexpectedEOF)) {
				return err
			}
			if err := q.GitPackPiece(ctx, rows.GitPackPieceParams{Digest: p.Digest, Piece: piece, Data: buffer[:n], OrgID: string(org), Key: string(key)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Open reads a kept pack piece by piece, each in a transaction of its own: nothing is held while GitHub takes its time.
func (s Git) Open(ctx context.Context, org identity.OrgID, key connector.Key, digest string) (io.ReadCloser, int64, error) {
	p, err := s.pack(ctx, org, key, digest)
	if err != nil {
		return nil, 0, err
	}
	return &packReader{ctx: ctx, git: s, org: org, key: key, digest: digest, pieces: p.Pieces}, p.Bytes, nil
}

// Diff is what a person reads of a kept pack.
func (s Git) Diff(ctx context.Context, org identity.OrgID, key connector.Key, digest string) (string, error) {
	p, err := s.pack(ctx, org, key, digest)
	return p.Diff, err
}

func (s Git) pack(ctx context.Context, org identity.OrgID, key connector.Key, digest string) (p rows.GitPackRow, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		p, err = rows.New(tx).GitPack(ctx, string(org), string(key), digest)
		return orAbsent(err, "pack")
	})
	return p, err
}

type packReader struct {
	ctx    context.Context
	git    Git
	org    identity.OrgID
	key    connector.Key
	digest string
	piece  int32
	pieces int32
	left   []byte
}

// Read implements io.Reader.
func (r *packReader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		if r.piece == r.pieces {
			return 0, io.EOF
		}
		err := r.git.readOrg(r.ctx, r.org, func(tx pgx.Tx) (err error) {
			r.left, err = rows.New(tx).GitPackRead(r.ctx, rows.GitPackReadParams{OrgID: string(r.org), Key: string(r.key), Digest: r.digest, Piece: r.piece})
			return orAbsent(err, "pack")
		})
		if err != nil {
			return 0, err
		}
		r.piece++
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *packReader) Close() error { return nil }

// Pin keeps GitHub's number of a repository the first time, and answers the kept one.
func (s Git) Pin(ctx context.Context, org identity.OrgID, key connector.Key, repository string, id int64) (kept int64, err error) {
	err = s.inOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if kept, err = q.GitPinned(ctx, string(org), string(key), repository); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err := q.GitPin(ctx, rows.GitPinParams{Name: repository, GithubID: id, OrgID: string(org), Key: string(key)}); err != nil {
			return err
		}
		kept, err = q.GitPinned(ctx, string(org), string(key), repository) // somebody else may have been first
		return orAbsent(err, "connection")
	})
	return kept, err
}

// Pins are the repositories of a connection as they were met.
func (s Git) Pins(ctx context.Context, org identity.OrgID, key connector.Key) (out []gitgateway.Pinned, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).GitPins(ctx, string(org), string(key))
		for _, r := range found {
			out = append(out, gitgateway.Pinned{Name: r.Name, ID: r.GithubID, Now: r.NowNamed})
		}
		return err
	})
	return out, err
}

// Named keeps the name a pinned repository has now; empty where it is the one it was connected under. What is known already changes nothing.
func (s Git) Named(ctx context.Context, org identity.OrgID, key connector.Key, p gitgateway.Pinned) error {
	return s.inOrg(ctx, org, func(tx pgx.Tx) error {
		n, err := rows.New(tx).GitNamed(ctx, rows.GitNamedParams{NowNamed: p.Now, OrgID: string(org), Key: string(key), Name: p.Name, GithubID: p.ID})
		if err != nil || n == 0 {
			return err
		}
		return insertAudit(ctx, tx, audit.Entry{
			Org: org, Actor: audit.System("github"), Event: audit.RepositoryRenamed, Object: audit.Object{Kind: "connection", ID: key.String()},
			Facts: []audit.Fact{{Name: "connected as", Value: p.Name}, {Name: "number", Value: strconv.FormatInt(p.ID, 10)}, {Name: "name", Value: cmp.Or(p.Now, p.Name)}},
		})
	})
}

// Sweep removes the packs that nothing waits for and nobody asks for again.
func (s Git) Sweep(ctx context.Context) error {
	found, err := s.pool.Query(ctx, "SELECT org FROM each_org()")
	if err != nil {
		return translated(err)
	}
	orgs, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return translated(err)
	}
	for _, org := range orgs {
		err := s.inOrg(ctx, identity.OrgID(org), func(tx pgx.Tx) error {
			_, err := rows.New(tx).GitPacksForget(ctx, org, packLife)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
