// Command demo shows the operator at work, from nothing: a real cluster, a real
// PostgreSQL, the operator's image, the three samples, a small consumer that loses
// acknowledgements, a Job that prunes, and a retention that is refused. It removes what
// it started, unless -keep says otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/messaginginbox/operator/test/environment"
)

const (
	namespace = "demo"
	patience  = 3 * time.Minute
	// expired are a thousand proofs of last month: the samples keep theirs for days, and
	// nobody wants to wait that long for a demo.
	expired = "INSERT INTO messenger_inbox SELECT 'async', md5(n::text), (now() AT TIME ZONE 'utc') - interval '30 days' FROM generate_series(1, 1000) n"
)

func main() {
	keep := flag.Bool("keep", false, "leave the cluster and the database up; end them with Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep bool) (err error) {
	env, err := environment.Up(ctx, "demo", os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Down(context.WithoutCancel(ctx))) }()
	d := demo{env: env}
	for _, act := range []func(context.Context) error{
		d.applySamples, d.handleMessages, d.prune, d.refuse, d.showStatus,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	if keep {
		fmt.Printf("\nLeft up until Ctrl-C: kubectl --kubeconfig %s -n %s get inbox\n", env.Kubeconfig, namespace)
		<-ctx.Done()
	}
	return nil
}

type demo struct {
	env   *environment.Environment
	scene int
}

// title prints what comes next.
func (d *demo) title(text string) {
	d.scene++
	fmt.Printf("\n\n%d. %s\n\n", d.scene, text)
}

// show prints a kubectl command as a user would type it, and what it answers.
func (d *demo) show(ctx context.Context, arguments ...string) error {
	fmt.Printf("$ kubectl %s\n", quoted(arguments))
	output, err := d.env.Kubectl(ctx, arguments...)
	fmt.Println(output)
	return err
}

// quoted joins arguments so that a shell takes them for what they are.
func quoted(arguments []string) string {
	words := make([]string, 0, len(arguments))
	for _, argument := range arguments {
		if strings.ContainsAny(argument, " {}\"*$?@=[]\\") && !strings.HasPrefix(argument, "--") {
			argument = "'" + argument + "'"
		}
		words = append(words, argument)
	}
	return strings.Join(words, " ")
}

// quietly runs kubectl without showing it.
func (d *demo) quietly(ctx context.Context, arguments ...string) error {
	_, err := d.env.Kubectl(ctx, arguments...)
	return err
}

func (d *demo) applySamples(ctx context.Context) error {
	d.title("Three teams apply their manifests: config/samples")
	if err := d.quietly(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	if err := d.quietly(ctx, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted"); err != nil {
		return err
	}
	for _, team := range []string{"order-service", "shop", "newsletter"} {
		if err := d.env.Postgres.CreateDatabase(ctx, team); err != nil {
			return err
		}
		if err := d.env.PutSecret(ctx, namespace, team+"-database", "url", d.env.Postgres.URL(team)); err != nil {
			return err
		}
	}
	if err := d.show(ctx, "-n", namespace, "apply", "-k", filepath.Join(d.env.Root(), "config", "samples")); err != nil {
		return err
	}
	for _, team := range []string{"order-service", "shop"} {
		if err := d.show(ctx, "-n", namespace, "wait", "--for=condition=Ready", "inbox/"+team, "--timeout=60s"); err != nil {
			return err
		}
	}
	return d.show(ctx, "-n", namespace, "get", "inbox")
}

func (d *demo) handleMessages(ctx context.Context) error {
	d.title("The shop's worker handles 20 orders, and dies 5 times between its commit and its acknowledgement")
	if err := d.consumer(ctx, "publish", "--queue", "async", "--count", "20"); err != nil {
		return err
	}
	if err := d.consumer(ctx, "consume", "--queue", "async", "--lose-acks", "5", "--redeliver-timeout", "2s"); err != nil {
		return err
	}
	fmt.Println("\nThe 5 messages came back, their proofs were found, and no order was shipped twice:")
	return d.consumer(ctx, "report", "--queue", "async")
}

func (d *demo) consumer(ctx context.Context, arguments ...string) error {
	fmt.Printf("$ go run ./test/consumer/cmd/consumer %s   # stands for the application\n", strings.Join(arguments, " "))
	command := exec.CommandContext(ctx, "go", append([]string{"run", "./test/consumer/cmd/consumer"}, arguments...)...) // #nosec G204 -- our own consumer
	command.Dir = d.env.Root()
	command.Env = append(os.Environ(), "CONSUMER_DATABASE_URL="+d.env.Postgres.URL("shop"))
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("consumer %s: %w", arguments[0], err)
	}
	return nil
}

func (d *demo) prune(ctx context.Context) error {
	d.title("A thousand proofs of last month are put into the shop's table, and its schedule is set to every minute")
	if err := d.env.Postgres.Exec(ctx, "shop", expired); err != nil {
		return err
	}
	if err := d.show(ctx, "-n", namespace, "patch", "inbox", "shop", "--type=merge", "-p", `{"spec":{"pruning":{"schedule":"* * * * *"}}}`); err != nil {
		return err
	}
	fmt.Println("Waiting for the next minute's Job ...")
	if err := d.show(ctx, "-n", namespace, "wait", "--for=jsonpath={.status.pruning.rowsDeleted}=1000", "inbox/shop", "--timeout="+patience.String()); err != nil {
		return err
	}
	if err := d.show(ctx, "-n", namespace, "get", "jobs,pods"); err != nil {
		return err
	}
	job, err := d.env.Kubectl(ctx, "-n", namespace, "get", "inbox", "shop", "-o", "jsonpath={.status.pruning.lastRun.job}")
	if err != nil {
		return err
	}
	if err := d.show(ctx, "-n", namespace, "logs", "job/"+job); err != nil {
		return err
	}
	fmt.Println("The proofs of the 20 orders are still there:")
	return d.consumer(ctx, "report", "--queue", "async")
}

func (d *demo) refuse(ctx context.Context) error {
	d.title("The newsletter's retention is shorter than its failure queue: no proof of it is ever pruned")
	return d.show(ctx, "-n", namespace, "get", "inbox", "newsletter", "-o", `jsonpath={range .status.conditions[?(@.status=="False")]}{.type}: {.message}{"\n"}{end}`)
}

func (d *demo) showStatus(ctx context.Context) error {
	d.title("The status, as everybody can read it")
	if err := d.show(ctx, "-n", namespace, "get", "inbox", "-o", "wide"); err != nil {
		return err
	}
	if err := d.show(ctx, "-n", namespace, "describe", "inbox", "shop"); err != nil {
		return err
	}
	return d.statusScreen(ctx)
}

// statusScreen shows the same on one screen, with the program that was built for the image.
func (d *demo) statusScreen(ctx context.Context) error {
	fmt.Println("The same on one screen, with the plugin: kubectl inbox status")
	command := exec.CommandContext(ctx, filepath.Join(d.env.Root(), "bin", "inbox"), "status", "shop", "--kubeconfig", d.env.Kubeconfig, "-n", namespace) // #nosec G204 -- our own program
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("inbox status: %w", err)
	}
	fmt.Println("\nEverything that was started is removed now; \"go run ./hack/demo -keep\" leaves it up.")
	return nil
}
