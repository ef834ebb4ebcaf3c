package faults_test

// network is a network of the servers' own; see network_linux_test.go.
type network struct {
	cut  func(server int, peers, clients bool)
	heal func()
}
