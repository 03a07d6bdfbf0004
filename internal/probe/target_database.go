package probe

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// NewDoctrineTarget is NewTarget for a doctrine transport, whose URL is its DSN or the URL
// of a database. A DSN names a connection that only the application knows: it is taken to
// be the inbox's own database. Connections come from the pools, for that owner.
func NewDoctrineTarget(name, rawURL string, place Place, inbox *database.Config, pools *database.Pools, owner string) (Target, error) {
	config, dsn := inbox, ""
	if trimmed := strings.TrimSpace(rawURL); strings.HasPrefix(trimmed, "doctrine:") {
		dsn = trimmed
	} else {
		parsed, err := database.Parse(trimmed)
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
	target.Database = config.String()
	target.Open = func(ctx context.Context) (*pgxpool.Pool, error) { return pools.Get(ctx, owner, config) }
	return target, nil
}

func reasonOf(err error) string {
	var invalid *database.URLError
	if errors.As(err, &invalid) {
		return invalid.Reason
	}
	return ReasonInvalidURL
}
