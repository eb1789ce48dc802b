// unread-bytes.ts: what a client still sends while its connection is leaving (farewell.ts). It is read, so
// that the end is no reset, and dropped. Bound: `bytesMax`; at the bound the socket is destroyed.

import type { DeviceSocket } from '../device-socket.ts'
import type { SocketBuffer } from './socket-buffer.ts'

export type UnreadBytes = {
  /** Bytes came; false at the bound. */
  drop(count: number): boolean
  /** What waits in the buffer of the socket. */
  dropWaiting(): null
}

/** More than a client has on its way when it reads the last packet. */
const bytesMax = 4 * 1024 ** 2
const chunkBytesMax = 64 * 1024

export function createUnreadBytes(socket: DeviceSocket, waiting: Pick<SocketBuffer, 'take'>): UnreadBytes {
  let bytesLeft = bytesMax
  return { drop, dropWaiting }

  function drop(count: number): boolean {
    bytesLeft -= count
    if (bytesLeft < 0) socket.destroy()
    return bytesLeft >= 0
  }

  function dropWaiting(): null {
    let bytes = socket.destroyed ? null : waiting.take(chunkBytesMax)
    while (bytes !== null && drop(bytes.length)) bytes = waiting.take(chunkBytesMax)
    return null
  }
}
