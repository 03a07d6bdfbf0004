package lint

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/messaginginbox/operator/internal/messenger"
	"github.com/messaginginbox/operator/internal/redelivery"
)

// redeliveryOption is the option after which a broker hands out a message that is
// still being handled, in seconds.
var redeliveryOption = map[redelivery.Type]struct {
	name      string
	byDefault time.Duration
}{
	redelivery.Doctrine:   {"redeliver_timeout", redelivery.DefaultRedeliverTimeout},
	redelivery.Redis:      {"redeliver_timeout", redelivery.DefaultRedeliverTimeout},
	redelivery.SQS:        {"visibility_timeout", 0}, // the queue's own, which the configuration does not say
	redelivery.Beanstalkd: {"ttr", redelivery.DefaultTTR},
}

var redeliverTimeoutTooShort = &Rule{
	ID:       "redeliver-timeout-too-short",
	Severity: Error,
	Summary:  "The broker hands a message out again while its handler still runs.",
	Why:      "The second worker waits for the first one's transaction on every message that takes long, and without an inbox it does the work a second time.",
	Fix:      "Raise redeliver_timeout (doctrine, redis), visibility_timeout (sqs) or ttr (beanstalkd) well above the longest handler. Say how long that is with --max-handler-time or with redelivery.maxHandlerTime in the manifest.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			option, known := redeliveryOption[transport.Type()]
			if !known {
				continue
			}
			handlerTime := s.handlerTime(transport)
			field := transport.Setting(option.name)
			timeout, valid := field.Duration(time.Second)
			switch {
			case field.IsSet() && valid && timeout <= handlerTime:
				report(field.At, field.Key, fmt.Sprintf("%s of %s is %s, a handler may take %s", option.name, transport.Name, timeout, handlerTime))
			case !field.IsSet() && option.byDefault > 0 && option.byDefault <= handlerTime:
				report(transport.DSN.At, transport.DSN.Key, fmt.Sprintf("%s of %s is %s by default, a handler may take %s", option.name, transport.Name, option.byDefault, handlerTime))
			}
		}
	},
}

var autoSetupInProduction = &Rule{
	ID:       "auto-setup-in-production",
	Severity: Warning,
	Summary:  "auto_setup is on in production.",
	Why:      "Workers and web requests create tables, queues and exchanges on their own: they need rights that they should not have, and a typing error in a name becomes a queue that nobody reads.",
	Fix:      "Set options.auto_setup: false under when@prod, and run messenger:setup-transports or a migration when you deploy.",
	check: func(s *subject, report reporter) {
		if s.Environment != "prod" {
			return
		}
		for _, transport := range s.Transports {
			switch transport.Type() {
			case redelivery.Doctrine, redelivery.AMQP, redelivery.Redis, redelivery.SQS:
			default:
				continue
			}
			setup := transport.Setting("auto_setup")
			switch {
			case setup.IsUnknown():
			case !setup.IsSet():
				report(transport.DSN.At, transport.DSN.Key, fmt.Sprintf("auto_setup of %s is on by default", transport.Name))
			case setup.IsTrue():
				report(setup.At, setup.Key, fmt.Sprintf("auto_setup of %s is on", transport.Name))
			}
		}
	},
}

var optionShadowed = &Rule{
	ID:       "option-shadowed",
	Severity: Warning,
	Summary:  "The DSN and options set one option differently.",
	Why:      "Only one of the two counts: the DSN's query beats options for doctrine, redis, amqp and sqs, and for beanstalkd options win. Whoever changes the other one changes nothing.",
	Fix:      "Set the option in one place.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			for _, pair := range transport.Shadowed() {
				winner, loser := pair[0], pair[1]
				report(loser.Field.At, loser.Field.Key, fmt.Sprintf("%s has no effect here: %s counts", loser.Name, winner.Field.Key))
			}
		}
	},
}

var credentialsWrittenOut = &Rule{
	ID:       "credentials-written-out",
	Severity: Warning,
	Summary:  "A password or key is written out in the configuration.",
	Why:      "Everyone who can read the repository, and every image built from it, has it.",
	Fix:      "Move the DSN to an environment variable or to Symfony's secrets, and change the password.",
	check: func(s *subject, report reporter) {
		for _, transport := range s.Transports {
			if slices.ContainsFunc(transport.Secrets(), s.isWrittenOut) {
				field := transport.DSN
				if len(transport.Address.Secrets) == 0 {
					field = messenger.Field{Key: "transports." + transport.Name + ".options", At: transport.At}
				}
				report(field.At, field.Key, fmt.Sprintf("the credentials of %s are in the file", transport.Name))
			}
		}
	},
}

// isWrittenOut is false for a secret that came from a variable of the user.
func (s *subject) isWrittenOut(secret string) bool {
	return slices.ContainsFunc(s.Sources, func(source messenger.Source) bool {
		return bytes.Contains(source.Content, []byte(secret))
	})
}
