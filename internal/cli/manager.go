package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/messaginginbox/operator/api/v1alpha1"
	"github.com/messaginginbox/operator/controllers"
	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/metrics"
	"github.com/messaginginbox/operator/internal/version"
)

// leaderElectionID is the name of the lease. The Role of config/rbac allows no other.
const leaderElectionID = "manager.messaginginbox.dev"

// slowRecheck is how soon a resource that waits on a person is looked at again.
const slowRecheck = time.Minute

// managerOptions are the flags of the manager.
type managerOptions struct {
	metricsAddress string
	probeAddress   string
	leaderElect    bool
	namespaces     string
	jobImage       string
	maxConcurrent  int
	recheck        time.Duration
	verbose        bool
}

func newManagerCommand() *cobra.Command {
	var o managerOptions
	command := &cobra.Command{
		Use:   "manager",
		Short: "Run the operator in the cluster",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runManager(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of the metrics; 0 turns them off")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of the health and readiness probes")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "reconcile only while holding the lease "+leaderElectionID)
	flags.StringVar(&o.namespaces, "namespace", os.Getenv("WATCH_NAMESPACE"), "namespaces to watch, separated by commas; empty: all (default from WATCH_NAMESPACE)")
	flags.StringVar(&o.jobImage, "job-image", "", "image of the Jobs; default: that of the manager's own pod, found through POD_NAME and POD_NAMESPACE")
	flags.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 4, "resources that are reconciled at once")
	flags.DurationVar(&o.recheck, "resync", 5*time.Minute, "how often a resource is looked at when nothing happens")
	flags.BoolVar(&o.verbose, "verbose", false, "log debug messages")
	return command
}

func runManager(ctx context.Context, o managerOptions) error {
	log := newLogger(o.verbose)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	ctx, stop := contextWithSignals(ctx)
	defer stop()

	image, err := findJobImage(ctx, config, scheme, o.jobImage)
	if err != nil {
		return err
	}
	operator, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controllers.CacheOptions(splitNamespaces(o.namespaces)...),
		Metrics:                       server.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionReleaseOnCancel: true, // the process ends right after the manager does
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := assemble(ctx, operator, image, o); err != nil {
		return err
	}
	log.Info("starting", "version", version.String(), "jobImage", image.Name, "namespaces", o.namespaces)
	if err := operator.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// assemble adds the controller, the pools' housekeeping and the probes to the manager.
func assemble(ctx context.Context, operator ctrl.Manager, image controllers.JobImage, o managerOptions) error {
	pools := database.NewPools(database.PoolOptions{})
	collector := &metrics.Collector{}
	if err := ctrlmetrics.Registry.Register(collector); err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	reconciler := &controllers.Reconciler{
		Client:      operator.GetClient(),
		Live:        operator.GetAPIReader(),
		Events:      operator.GetEventRecorder(controllers.ManagedBy),
		Pools:       pools,
		Image:       image,
		Clock:       time.Now,
		Recheck:     o.recheck,
		SlowRecheck: min(slowRecheck, o.recheck),
		Metrics:     collector,
	}
	if err := reconciler.SetupWithManager(ctx, operator, o.maxConcurrent); err != nil {
		return err
	}
	if err := operator.Add(closeIdlePools(pools)); err != nil {
		return fmt.Errorf("adding the pools' housekeeping: %w", err)
	}
	if err := operator.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health probe: %w", err)
	}
	if err := operator.AddReadyzCheck("cache", cacheSynced(operator)); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	return nil
}

// closeIdlePools closes the pools that nobody used for a while, and all at the end.
func closeIdlePools(pools *database.Pools) manager.RunnableFunc {
	return func(ctx context.Context) error {
		defer pools.Close()
		ticker := time.NewTicker(time.Minute)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				pools.CloseIdle()
			}
		}
	}
}

// newLogger writes JSON lines to standard error. Nothing that is logged holds a
// credential: errors of the database are redacted where they arise.
func newLogger(verbose bool) logr.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Kubernetes' types: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering our types: %w", err)
	}
	return scheme, nil
}

func splitNamespaces(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// findJobImage is the declared image, else that of the manager's own pod, so that the
// Jobs are of the manager's version whatever installed it.
func findJobImage(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, declared string) (controllers.JobImage, error) {
	if declared != "" {
		return controllers.JobImage{Name: declared}, nil
	}
	key := client.ObjectKey{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")}
	if key.Namespace == "" || key.Name == "" {
		return controllers.JobImage{}, fmt.Errorf("the image of the Jobs is unknown: set --job-image, or POD_NAME and POD_NAMESPACE as config/manager does")
	}
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return controllers.JobImage{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	var pod corev1.Pod
	if err := reader.Get(ctx, key, &pod); err != nil {
		return controllers.JobImage{}, fmt.Errorf("reading the manager's own pod %s to find its image (set --job-image to do without): %w", key, err)
	}
	own := pod.Spec.Containers[0]
	return controllers.JobImage{Name: own.Image, PullPolicy: own.ImagePullPolicy}, nil
}
