// Package rpc tests the guards for gRPC and Connect with each other's clients, with interceptors of other projects, and
// with grpc-go's interoperability tests. It is in a module of its own so that users do not get what these need.
package rpc
