package cli

import (
	"context"
	"errors"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// cacheSynced is ready once the manager has read what it watches: a missing right
// shows as a pod that never becomes ready.
func cacheSynced(operator ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !operator.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not yet filled")
		}
		return nil
	}
}

// contextWithSignals ends at SIGTERM or SIGINT.
func contextWithSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
}
