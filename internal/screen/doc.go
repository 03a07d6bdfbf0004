// Package screen shows the status of MessagingInbox resources to a person at a terminal:
// the verdict first, and at the end what to do. It is text from plain values: the same
// resource at the same time gives the same screen.
package screen
