// Package check judges a history, and reads nothing else: a run that failed can be judged again, by the command recheck.
// Package linear judges it a second time, by models.
//
// What the servers cannot help forgetting (an asynchronous failover, a restart without persistence, FLUSHALL) excuses an
// overlap between a lease from before and one from after. Those are counted apart. Tokens have no excuse.
package check
