// Package functions runs Lambda functions on this machine as Lambda would: the
// real bootstrap binaries, each instance a process of its own under the AWS
// Lambda Runtime Interface Emulator, started on demand up to a concurrency
// limit, stopped (SIGSTOP) between invocations and reaped when idle.
//
//   - Runner invokes, synchronously and asynchronously; NewHandler speaks
//     Lambda's Invoke API over it.
//   - Pump feeds a function from a queue, as an SQS event source mapping does.
//   - Scheduler keeps the time for scheduled rules.
//
// Known differences from Lambda: no memory limit, the invoked function's ARN in
// the runtime API names the emulator's own region and account, /tmp is shared
// (TMPDIR is not), and instances end by SIGKILL.
package functions
