// accept-filter.ts: refuses a connection by its address before Node creates a socket for it. In a flood of
// thousands per second the sockets would be most of the work, and 40,000 of them leave 60 MB more in the
// heap, which V8 gives back late.
//
// net.Server asks its `blockList`, a net.BlockList, at this place.

import { BlockList, type SocketAddress } from 'node:net'
import { plainAddress } from '../connection-limits/connection-limits.ts'

class AcceptFilter extends BlockList {
  readonly #mayConnect: (address: string) => boolean

  constructor(mayConnect: (address: string) => boolean) {
    super()
    this.#mayConnect = mayConnect
  }

  override check(given: string | SocketAddress): boolean {
    const address = typeof given === 'string' ? given : given.address
    return !this.#mayConnect(plainAddress(address) ?? address)
  }
}

/** `mayConnect` is called once for each connection. */
export function createAcceptFilter(mayConnect: (address: string) => boolean): BlockList {
  return new AcceptFilter(mayConnect)
}
