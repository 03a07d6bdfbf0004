package lint

// invalidConfiguration has no check of its own: reading the configuration finds it.
var invalidConfiguration = &Rule{
	ID:       "invalid-configuration",
	Severity: Error,
	Summary:  "The configuration cannot be read, or Symfony refuses it.",
	Why:      "The application does not start with this configuration.",
	Fix:      "Correct the file at this position.",
}

var rules = []*Rule{
	invalidConfiguration,
	misspeltKey,
	unknownKey,
	unknownOption,
	optionNotANumber,
	inboxWithoutIdentityStamps,
	inboxWithoutDoctrineTransaction,
	otherBusWithoutDoctrineTransaction,
	inboxOnAnotherConnection,
	inboxWithoutBroker,
	batchHandlersDeclared,
	outboxMissing,
	outboxUndeclared,
	amqpWithoutRetries,
	failureTransportAbsent,
	failureTransportUndeclared,
	failureTransportUnbounded,
	failureTransportSharesQueue,
	transportsShareQueue,
	redisConsumerShared,
	redeliverTimeoutTooShort,
	retryServiceOpaque,
	autoSetupInProduction,
	optionShadowed,
	credentialsWrittenOut,
}

// Rules are all rules, in the order of the documentation.
func Rules() []*Rule { return rules }
