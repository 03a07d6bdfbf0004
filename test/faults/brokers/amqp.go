// Package brokers has the transports besides the Doctrine table, each spoken to as Symfony
// Messenger does.
package brokers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/messaginginbox/operator/test/consumer"
)

const (
	// delayExchange routes to the queues in which delayed messages wait.
	delayExchange = "delays"
	// retriesHeader counts the retries of a message.
	retriesHeader = "x-retries"
	// delayQueueLife is how long an unused delay queue stays beyond its delay.
	delayQueueLife = time.Minute
)

// AMQP is the amqp transport: an exchange of type fanout and one queue, both of the
// transport's name. Messages are fetched one by one with basic.get. A delayed message waits
// in a queue of its delay, from which RabbitMQ moves it on when its time to live ends.
type AMQP struct {
	connection *amqp.Connection
	channel    *amqp.Channel
	queue      string
	delays     []time.Duration
}

// OpenAMQP connects and declares exchange and queue. delays are those that messages are
// published with by any worker; Waiting looks into their queues.
func OpenAMQP(url, queue string, heartbeat time.Duration, delays []time.Duration) (*AMQP, error) {
	connection, err := amqp.DialConfig(url, amqp.Config{Heartbeat: heartbeat, Locale: "en_US"})
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	b := &AMQP{connection: connection, queue: queue, delays: delays}
	if err := b.setUp(); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return b, nil
}

func (b *AMQP) setUp() error {
	var err error
	if b.channel, err = b.connection.Channel(); err != nil {
		return err
	}
	// Without confirms a message is lost that RabbitMQ did not take.
	if err := b.channel.Confirm(false); err != nil {
		return err
	}
	if err := b.channel.ExchangeDeclare(b.queue, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
		return err
	}
	if err := b.channel.ExchangeDeclare(delayExchange, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		return err
	}
	if _, err := b.channel.QueueDeclare(b.queue, true, false, false, false, nil); err != nil {
		return err
	}
	return b.channel.QueueBind(b.queue, "", b.queue, false, nil)
}

// Publish returns once RabbitMQ has confirmed that it has the message.
func (b *AMQP) Publish(ctx context.Context, message consumer.Message, delay time.Duration) error {
	exchange, key := b.queue, ""
	if delay > 0 {
		exchange, key = delayExchange, b.delayQueue(delay)
		if err := b.declareDelayQueue(delay); err != nil {
			return fmt.Errorf("declare the queue of the delay %s: %w", delay, err)
		}
	}
	confirmation, err := b.channel.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, amqp.Publishing{
		MessageId:    message.ID,
		Headers:      amqp.Table{retriesHeader: int64(message.Retries)},
		DeliveryMode: amqp.Persistent,
		Body:         []byte(message.Body),
	})
	if err != nil {
		return fmt.Errorf("send message %s to the exchange %s: %w", message.ID, exchange, err)
	}
	taken, err := confirmation.WaitContext(ctx)
	if err != nil {
		return fmt.Errorf("wait for the confirmation of message %s: %w", message.ID, err)
	}
	if !taken {
		return fmt.Errorf("RabbitMQ did not take message %s", message.ID)
	}
	return nil
}

func (b *AMQP) delayQueue(delay time.Duration) string {
	return fmt.Sprintf("delay_%s__%d_delay", b.queue, delay.Milliseconds())
}

func (b *AMQP) declareDelayQueue(delay time.Duration) error {
	name := b.delayQueue(delay)
	_, err := b.channel.QueueDeclare(name, true, false, false, false, amqp.Table{
		amqp.QueueMessageTTLArg:     delay.Milliseconds(),
		amqp.QueueTTLArg:            (delay + delayQueueLife).Milliseconds(),
		"x-dead-letter-exchange":    b.queue,
		"x-dead-letter-routing-key": "",
	})
	if err != nil {
		return err
	}
	return b.channel.QueueBind(name, name, delayExchange, false, nil)
}

// Receive fetches one message with basic.get.
func (b *AMQP) Receive(context.Context) (consumer.Delivery, bool, error) {
	got, ready, err := b.channel.Get(b.queue, false)
	if err != nil || !ready {
		return consumer.Delivery{}, false, err
	}
	retries, ok := got.Headers[retriesHeader].(int64)
	if !ok {
		return consumer.Delivery{}, false, fmt.Errorf("message %s has no number of retries in its header %s", got.MessageId, retriesHeader)
	}
	return consumer.Delivery{
		Message:     consumer.Message{ID: got.MessageId, Retries: int(retries), Body: string(got.Body)},
		Tag:         strconv.FormatUint(got.DeliveryTag, 10),
		Redelivered: got.Redelivered,
	}, true, nil
}

// Acknowledge sends basic.ack. RabbitMQ does not answer it.
func (b *AMQP) Acknowledge(_ context.Context, delivery consumer.Delivery) error {
	tag, err := strconv.ParseUint(delivery.Tag, 10, 64)
	if err != nil {
		return err
	}
	return b.channel.Ack(tag, false)
}

// Reject sends basic.nack without requeue.
func (b *AMQP) Reject(_ context.Context, delivery consumer.Delivery) error {
	tag, err := strconv.ParseUint(delivery.Tag, 10, 64)
	if err != nil {
		return err
	}
	return b.channel.Nack(tag, false, false)
}

// Waiting counts what is ready and delayed. What another worker holds RabbitMQ tells only
// through its management interface.
func (b *AMQP) Waiting(context.Context) (int64, error) {
	var total int64
	for _, delay := range b.delays {
		count, err := b.count(b.delayQueue(delay))
		if err != nil {
			return 0, err
		}
		total += count
	}
	// Last, since messages move from the delay queues to this one.
	count, err := b.count(b.queue)
	return total + count, err
}

// count uses a channel of its own: RabbitMQ closes the channel that asks for a queue that
// does not exist.
func (b *AMQP) count(queue string) (int64, error) {
	channel, err := b.connection.Channel()
	if err != nil {
		return 0, err
	}
	state, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.NotFound {
		return 0, nil
	}
	return int64(state.Messages), errors.Join(err, channel.Close())
}

// Close ends the connection; RabbitMQ then hands out again what is unacknowledged.
func (b *AMQP) Close(context.Context) error { return b.connection.Close() }

// encode and decode give a message the form in which it is kept where the broker knows no ids.
func encode(message consumer.Message) (string, error) {
	text, err := json.Marshal(message)
	return string(text), err
}

func decode(text string) (consumer.Message, error) {
	var message consumer.Message
	err := json.Unmarshal([]byte(text), &message)
	return message, err
}
