package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/hack/cluster/binaries"
	"github.com/messaginginbox/operator/hack/cluster/node"
	"github.com/messaginginbox/operator/hack/cluster/progress"
)

// defaultPatience leaves room for a slow machine; a warm one needs about a tenth of it.
const defaultPatience = 4 * time.Minute

// options are what several commands share.
type options struct {
	directory string // state directory
	binaries  string // folder of the built programs, empty to build what is missing
	source    string // hack/cluster of a checkout, empty to look for it
}

func newCommand() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real single-node Kubernetes for the tests and the demo",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return o.complete()
		},
	}
	root.PersistentFlags().StringVar(&o.directory, "dir", "", "state directory of the cluster (default: below the user's cache directory)")
	root.PersistentFlags().StringVar(&o.binaries, "binaries", "", "folder of programs that are built already (default: build what is missing)")
	root.PersistentFlags().StringVar(&o.source, "source", "", "the checkout's folder hack/cluster (default: looked for from the working directory)")
	root.AddCommand(newBinaries(&o), newUp(&o), newDown(&o), newStatus(&o), newKubeconfig(&o), newGateway(&o), newImage(&o), newLoad(&o), newFirst())
	return root
}

// complete fills in the state directory and makes it absolute: it names the cluster.
func (o *options) complete() error {
	if o.directory == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("find the user's cache directory (or give --dir): %w", err)
		}
		o.directory = filepath.Join(cache, "messaginginbox-operator", "cluster")
	}
	absolute, err := filepath.Abs(o.directory)
	if err != nil {
		return fmt.Errorf("find the state directory: %w", err)
	}
	o.directory = absolute
	return nil
}

func (o *options) layout() node.Layout { return node.Layout{Dir: o.directory} }

// ensure builds what is missing of the set and gives the folder of the programs.
func (o *options) ensure(cmd *cobra.Command, set []binaries.Binary, show *progress.Printer) (string, error) {
	if o.binaries != "" {
		return filepath.Abs(o.binaries)
	}
	source := o.source
	if source == "" {
		working, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("find the working directory: %w", err)
		}
		if source, err = binaries.FindSource(working); err != nil {
			return "", err
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	directory, err := binaries.Directory(cache, source)
	if err != nil {
		return "", err
	}
	return directory, binaries.Ensure(cmd.Context(), source, directory, set, show)
}

func newBinaries(o *options) *cobra.Command {
	var envtest bool
	cmd := &cobra.Command{
		Use:   "binaries",
		Short: "Build the cluster's programs that are missing and print their folder",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := binaries.All()
			if envtest {
				set = binaries.Envtest()
			}
			directory, err := o.ensure(cmd, set, progress.New(os.Stderr))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), directory)
			return err
		},
	}
	cmd.Flags().BoolVar(&envtest, "envtest", false, "only kube-apiserver, etcd and kubectl: the folder is then good for KUBEBUILDER_ASSETS")
	return cmd
}

func newKubeconfig(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := node.Running(o.layout())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), cluster.Layout.Kubeconfig())
			return err
		},
	}
}

func newGateway(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "gateway",
		Short: "Print the address at which a pod reaches this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := node.Running(o.layout())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), cluster.State.Network.Machine())
			return err
		},
	}
}

func newStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Print what runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := node.Running(o.layout())
			if err != nil {
				return err
			}
			parts, err := cluster.Parts()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			state := cluster.State
			if _, err = fmt.Fprintf(out, "state       %s\nkubeconfig  %s\nkubectl     %s\naddress     %s\ngateway     %s\npods        %s\n",
				cluster.Layout.Dir, cluster.Layout.Kubeconfig(), filepath.Join(state.Programs.Binaries, "kubectl"),
				state.Network.Node(), state.Network.Machine(), state.Network.Subnet); err != nil {
				return err
			}
			for _, part := range parts {
				if _, err = fmt.Fprintf(out, "%-24s process %-8d %s\n", part.Name, part.PID, cluster.Layout.Log(part.Name)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
