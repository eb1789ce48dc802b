// shared-read-buffer.ts: has Node read all sockets into one buffer.
//
// Node allocates 64 KiB for each read, however little arrives, and frees it at the next garbage collection. A
// client that sends as fast as it can makes 100 MB of such buffers between two collections, and glibc returns
// little of them to the system. What a socket reads here is copied where it is kept, and most of it is not.
//
// Node has this for its own sockets as the option `onread`, but not for those of a server: the names below
// are Node's and not documented. Where one of them is missing, sockets are read as usual.
// test/ingest/broker/gate/shared-read-buffer.test.ts fails when an upgrade changes them; read lib/net.js
// then.

import type { DeviceSocket } from '../device-socket.ts'

/**
 * Takes bytes that are valid until it returns. False: the socket is not read until the stream asks. One
 * function may serve all sockets: it is called as a method of its socket.
 */
export type TakeBytes = (this: DeviceSocket, bytes: Buffer) => boolean

type Handle = { useUserBuffer?: (buffer: Buffer) => void }

type SocketInternals = DeviceSocket & { _handle?: Handle | null } & Record<symbol, unknown>

const shared = Buffer.allocUnsafeSlow(16 * 1024)

/** By what takes the bytes: sockets with the same one have one function here. */
const callbacks = new WeakMap<TakeBytes, (this: DeviceSocket, count: number) => boolean>()

function callbackOf(take: TakeBytes): (this: DeviceSocket, count: number) => boolean {
  const known = callbacks.get(take)
  if (known !== undefined) return known
  function callback(this: DeviceSocket, count: number): boolean {
    return take.call(this, shared.subarray(0, count))
  }
  callbacks.set(take, callback)
  return callback
}

/** Whether bytes come to `take` from now on, and no longer to `push`. The end still comes to `push`. */
export function readIntoSharedBuffer(socket: DeviceSocket, take: TakeBytes): boolean {
  const internals = socket as SocketInternals
  const handle = internals._handle
  const names = Object.getOwnPropertySymbols(socket)
  const buffer = names.find(({ description }) => description === 'kBuffer')
  const callback = names.find(({ description }) => description === 'kBufferCb')
  if (buffer === undefined || callback === undefined || typeof handle?.useUserBuffer !== 'function')
    return false
  handle.useUserBuffer(shared)
  internals[buffer] = shared
  internals[callback] = callbackOf(take)
  return true
}
