package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// cluster is how a command finds the cluster: by kubectl's own flags, kubeconfig files and
// environment.
type cluster struct {
	flags         *genericclioptions.ConfigFlags
	allNamespaces bool
}

func newCluster() *cluster {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir = nil // the commands read a few objects, and keep nothing on the disk
	flags.DisableCompression = nil
	return &cluster{flags: flags}
}

// addFlags adds kubectl's flags.
func (c *cluster) addFlags(command *cobra.Command) {
	c.flags.AddFlags(command.Flags())
	complete(command, "namespace", c.completeNamespaces)
	complete(command, "context", c.completeContexts)
}

func (c *cluster) addAllNamespacesFlag(command *cobra.Command) {
	command.Flags().BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "look at the resources of all namespaces")
}

// connection is a cluster that was found.
type connection struct {
	client.Client
	namespace string
}

// connect makes the client. Nothing is asked of the API server yet.
func (c *cluster) connect() (*connection, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	if err = c.somewhere(config); err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &connection{Client: kube, namespace: namespace}, nil
}

// somewhere refuses the address that kubectl falls back on when it was told of no cluster:
// a refused connection to it tells nobody what to do.
func (c *cluster) somewhere(config *rest.Config) error {
	const fallback = "http://localhost:8080"
	if config.Host != fallback || *c.flags.APIServer != "" {
		return nil
	}
	kubeconfig, err := c.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	if len(kubeconfig.Clusters) == 0 {
		return errors.New("no cluster is configured: set KUBECONFIG or --kubeconfig to a file that names one, or --server")
	}
	return nil
}

// inbox reads one resource of the namespace.
func (c *connection) inbox(ctx context.Context, name string) (*v1alpha1.MessagingInbox, error) {
	inbox := &v1alpha1.MessagingInbox{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, inbox); err != nil {
		return nil, fmt.Errorf("reading %s in namespace %s: %w", name, c.namespace, explained(err))
	}
	identify(inbox)
	return inbox, nil
}

func (c *connection) onlyInbox(ctx context.Context, name string) ([]*v1alpha1.MessagingInbox, error) {
	inbox, err := c.inbox(ctx, name)
	if err != nil {
		return nil, err
	}
	return []*v1alpha1.MessagingInbox{inbox}, nil
}

// inboxes lists the resources of the namespace, or of all.
func (c *connection) inboxes(ctx context.Context, allNamespaces bool) (*v1alpha1.MessagingInboxList, error) {
	list := &v1alpha1.MessagingInboxList{}
	where := "all namespaces"
	var options []client.ListOption
	if !allNamespaces {
		where = "namespace " + c.namespace
		options = append(options, client.InNamespace(c.namespace))
	}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing the resources of %s: %w", where, explained(err))
	}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind + "List"))
	for i := range list.Items {
		identify(&list.Items[i])
	}
	return list, nil
}

// explained says what it means that the API server does not know the kind.
func explained(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the operator's CRD is not installed in this cluster: %w", err)
	}
	return err
}

// identify sets the kind, which the client leaves empty and printers need.
func identify(inbox *v1alpha1.MessagingInbox) {
	inbox.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
}

// resourceName is the name as kubectl prints it.
func resourceName(name string) string {
	return fmt.Sprintf("messaginginbox.%s/%s", v1alpha1.GroupVersion.Group, name)
}
