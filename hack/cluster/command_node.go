package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/messaginginbox/operator/hack/cluster/binaries"
	"github.com/messaginginbox/operator/hack/cluster/elevate"
	"github.com/messaginginbox/operator/hack/cluster/image"
	"github.com/messaginginbox/operator/hack/cluster/node"
	"github.com/messaginginbox/operator/hack/cluster/progress"
)

func newUp(o *options) *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up and print KUBECONFIG=PATH",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			show := progress.New(os.Stderr)
			programs, err := node.FindPrograms("")
			if err != nil {
				return err
			}
			if programs.Binaries, err = o.ensure(cmd, binaries.All(), show); err != nil {
				return err
			}
			if !elevate.Root() {
				// What is above the state directory stays the user's own.
				if err = os.MkdirAll(filepath.Dir(o.directory), 0o755); err != nil {
					return fmt.Errorf("make the folder of the state directory: %w", err)
				}
				return elevate.Run(cmd.Context(), []string{"up", "--dir", o.directory, "--binaries", programs.Binaries, "--timeout", patience.String()})
			}
			started := time.Now()
			already, err := node.Up(cmd.Context(), o.layout(), programs, patience, show)
			if err != nil {
				return err
			}
			if already {
				fmt.Fprintln(os.Stderr, "the cluster is up already")
			} else {
				fmt.Fprintln(os.Stderr, "the cluster is up after", progress.Elapsed(time.Since(started)))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "KUBECONFIG=%s\n", o.layout().Kubeconfig())
			return err
		},
	}
	cmd.Flags().DurationVar(&patience, "timeout", defaultPatience, "how long the cluster may take until a pod can run")
	return cmd
}

func newDown(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove everything that up made",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !elevate.Root() {
				return elevate.Run(cmd.Context(), []string{"down", "--dir", o.directory})
			}
			existed, err := node.Down(o.layout())
			if err != nil {
				return err
			}
			if !existed {
				fmt.Fprintln(os.Stderr, "there is no cluster in", o.directory)
			}
			return nil
		},
	}
}

func newImage(o *options) *cobra.Command {
	var entrypoint, output string
	cmd := &cobra.Command{
		Use:   "image NAME:TAG=BINARY...",
		Short: "Make an image of each static program and load it into the cluster",
		Long: `Make an image of each static program and load it into the cluster.

The image has one layer with the program and /tmp, and runs as user ` + image.User + `.
Use imagePullPolicy IfNotPresent or Never: there is no registry to pull it from.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			specs, err := parseSpecs(arguments, entrypoint)
			if err != nil {
				return err
			}
			if output != "" {
				if len(specs) != 1 {
					return errors.New("--output takes one image")
				}
				return writeImage(specs[0], output)
			}
			return loadImages(cmd, o, specs)
		},
	}
	cmd.Flags().StringVar(&entrypoint, "entrypoint", "", "path of the program in the image (default: its own name in the root)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the image to this archive instead of loading it")
	return cmd
}

func newLoad(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Load image archives into the cluster",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, archives []string) error {
			return load(cmd, o, archives)
		},
	}
}

// newFirst is what up runs in new namespaces; it is of no use to anybody else.
func newFirst() *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use:    node.FirstCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			directory, err := cmd.Flags().GetString("dir")
			if err != nil {
				return err
			}
			return node.RunFirst(directory, patience)
		},
	}
	cmd.Flags().DurationVar(&patience, "timeout", defaultPatience, "how long the cluster may take")
	return cmd
}

func parseSpecs(arguments []string, entrypoint string) ([]image.Spec, error) {
	specs := make([]image.Spec, 0, len(arguments))
	for _, argument := range arguments {
		spec, err := image.ParseSpec(argument, entrypoint)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func loadImages(cmd *cobra.Command, o *options, specs []image.Spec) error {
	folder, err := os.MkdirTemp("", "messaginginbox-image-")
	if err != nil {
		return fmt.Errorf("make a folder for the images: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	archives := make([]string, 0, len(specs))
	for i, spec := range specs {
		archive := filepath.Join(folder, fmt.Sprintf("%d.tar", i))
		if err := writeImage(spec, archive); err != nil {
			return err
		}
		archives = append(archives, archive)
	}
	return load(cmd, o, archives)
}

func writeImage(spec image.Spec, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the image %s: %w", spec.Tag, err)
	}
	return errors.Join(image.Write(spec, file), file.Close())
}

func load(cmd *cobra.Command, o *options, archives []string) error {
	cluster, err := node.Running(o.layout())
	if err != nil {
		return err
	}
	if !elevate.Root() {
		return elevate.Run(cmd.Context(), append([]string{"load", "--dir", o.directory, "--"}, archives...))
	}
	for _, archive := range archives {
		if err := cluster.Load(cmd.Context(), archive); err != nil {
			return err
		}
	}
	return nil
}
