// Package messenger reads Symfony configuration files and says which transports,
// buses and routes framework.messenger declares in them, as Symfony's own loader and
// configuration tree would: files merged in order, when@ENV after the rest of its
// file, parameters and environment variables resolved. Every value keeps the position
// that it came from.
//
// It is pure: it reads the sources that it is given and nothing else, looks up no
// variable of its own process, and executes nothing.
package messenger
