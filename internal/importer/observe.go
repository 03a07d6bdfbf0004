package importer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// declareObserve refers to a Secret for a DSN with credentials, which never
// enter the manifest.
func (d *declaring) declareObserve() {
	transport := d.transport
	switch transport.Type() {
	case redelivery.AMQP, redelivery.Redis, redelivery.SQS, redelivery.Beanstalkd:
	default:
		return
	}
	if !transport.HasCredentials() {
		return
	}
	d.set("observe.urlSecretRef.name", d.secretName(), Text, transport.DSN)
	d.set("observe.urlSecretRef.key", secretKey, Text, transport.DSN)
	switch transport.Type() {
	case redelivery.AMQP:
		if queues := transport.Queues(); len(queues) == 1 {
			d.setKnown("observe.virtualHost", transport.VirtualHost())
			d.setKnown("observe.queue", queues[0])
		}
	case redelivery.Redis:
		d.setKnown("observe.stream", transport.Setting("stream").Text())
		d.setKnown("observe.group", transport.Setting("group").Text())
	case redelivery.SQS:
		d.setKnown("observe.queue", transport.Setting("queue_name").Text())
	case redelivery.Beanstalkd:
		d.setKnown("observe.queue", transport.Setting("tube_name").Text())
	}
}

// setKnown leaves out what is not known: the URL in the Secret has it.
func (d *declaring) setKnown(path, value string) {
	if value != "" && len(value) <= 255 && !strings.ContainsAny(value, "%@") {
		d.set(path, value, Text, d.transport.DSN)
	}
}

const secretKey = "url"

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// maxSecretName leaves room below the limit of 253 characters.
const maxSecretName = 200

func transportSecret(resource, transport string) string {
	name := resource + "-" + strings.Trim(notInNames.ReplaceAllString(strings.ToLower(transport), "-"), "-")
	if len(name) > maxSecretName {
		name = name[:maxSecretName]
	}
	return strings.Trim(name, "-.")
}

// secretName tells transports apart whose names become the same.
func (d *declaring) secretName() string {
	base := transportSecret(d.options.Name, d.transport.Name)
	name := base
	for number := 2; d.secrets[name]; number++ {
		name = fmt.Sprintf("%s-%d", base, number)
	}
	d.secrets[name] = true
	return name
}

// DatabaseSecret is the default name of the Secret with the database's URL.
func DatabaseSecret(resource string) string { return resource + "-database" }

// SecretCommand is the command that creates a Secret, with a placeholder for its value.
func SecretCommand(namespace, name, placeholder string) string {
	in := ""
	if namespace != "" {
		in = " --namespace " + namespace
	}
	return fmt.Sprintf("kubectl create secret generic %s%s --from-literal=%s='%s'", name, in, secretKey, placeholder)
}

// placeholders say what the user fills in.
var placeholders = map[redelivery.Type]string{
	redelivery.AMQP:       "<URL of the management API, with user and password>",
	redelivery.Redis:      "<the DSN of redis, with user and password>",
	redelivery.SQS:        "<the DSN of sqs, with its keys>",
	redelivery.Beanstalkd: "<the DSN of beanstalkd>",
}

const databasePlaceholder = "<the DATABASE_URL of the application>"

// Secrets are the commands that create the Secrets to which the manifest refers.
func Secrets(declarations []Declaration, options Options) []string {
	commands := []string{SecretCommand(options.Namespace, options.Secret, databasePlaceholder)}
	for _, declaration := range declarations {
		if name, ok := declaration.Field("observe.urlSecretRef.name"); ok {
			kind, _ := declaration.Field("type")
			commands = append(commands, SecretCommand(options.Namespace, name.Value, placeholders[redelivery.Type(kind.Value)]))
		}
	}
	return commands
}
