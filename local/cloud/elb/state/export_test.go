package state

// Timers is how many timers a store keeps, stale ones included.
func Timers(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.timers)
}
