// listening-port.ts: listens on an address, and tries again where that is impossible: another program may
// have the port, and an address may come with its network after the start.
//
//   first try -> open
//       '-> failed -> after 1 s, doubling to 30 s -> open
//
// It ends with close().

import type { AddressInfo, ListenOptions, Server } from 'node:net'
import type { CancelTimer, Clock } from '../clock.ts'

export type ListeningPort = {
  /** Ends the tries. The server itself is closed by its owner. */
  close(): void
}

const retryMs = { first: 1000, most: 30_000 }

/**
 * Resolves after the first try. `failed` is called for each try that failed, and where an open port cannot
 * accept a connection.
 */
export function listen(
  server: Server,
  address: ListenOptions,
  deps: { clock: Clock; opened: (port: number) => void; failed: (error: Error) => void },
): Promise<ListeningPort> {
  let delayMs = retryMs.first
  let cancel: CancelTimer = () => {}
  let isClosed = false
  const close = () => {
    isClosed = true
    cancel()
  }
  return new Promise((resolve) => {
    server.on('listening', () => {
      // A name was looked up meanwhile.
      if (isClosed) server.close()
      else deps.opened((server.address() as AddressInfo).port)
      resolve({ close })
    })
    server.on('error', (error) => {
      deps.failed(error)
      if (!server.listening) again()
      resolve({ close })
    })
    server.listen(address)
  })

  function again(): void {
    if (isClosed) return
    cancel = deps.clock.after(delayMs, () => void server.listen(address))
    delayMs = Math.min(delayMs * 2, retryMs.most)
  }
}
