package probe

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// pooled is a database with the pools that connect to it, for one owner.
type pooled struct {
	config *database.Config
	pools  *database.Pools
	owner  string
}

func (p pooled) with(config *database.Config) *pooled {
	p.config = config
	return &p
}

// NewDoctrineTarget is NewTarget for a doctrine transport, whose URL is its DSN or the URL
// of a database. A DSN names a connection that only the application knows: it is taken to
// be the inbox's own database. Another database is trusted by the authorities of the
// inbox's, unless its URL says otherwise. Connections come from the pools, for that owner.
func NewDoctrineTarget(name, rawURL string, place Place, inbox *database.Config, pools *database.Pools, owner string) (Target, error) {
	config, dsn := inbox, ""
	if trimmed := strings.TrimSpace(rawURL); strings.HasPrefix(trimmed, "doctrine:") {
		dsn = trimmed
	} else {
		parsed, err := database.Parse(trimmed)
		if err == nil && inbox != nil {
			parsed, err = parsed.WithCAOf(inbox)
		}
		if err != nil {
			return Target{}, failed(reasonOf(err), "the URL is neither %s: %s", expectedURL[redelivery.Doctrine], err)
		}
		config = parsed
	}
	target, err := NewTarget(name, redelivery.Doctrine, dsn, place)
	if err != nil {
		return Target{}, err
	}
	if config == nil {
		return Target{}, failed(ReasonInvalidURL, "the DSN names no database, and that of the inbox is not known")
	}
	target.database = &pooled{config: config, pools: pools, owner: owner}
	return target, nil
}

// Open returns the pool of the database of a doctrine transport.
func (t Target) Open(ctx context.Context) (*pgxpool.Pool, error) {
	return t.database.pools.Get(ctx, t.database.owner, t.database.config)
}

func reasonOf(err error) string {
	var invalid *database.URLError
	if errors.As(err, &invalid) {
		return invalid.Reason
	}
	return ReasonInvalidURL
}
