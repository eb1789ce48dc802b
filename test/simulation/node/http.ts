// http.ts: node:http with its own parser and server, on connections of the simulated network.

import { machine } from '../machine/current.ts'
import type { SimListener } from '../machine/network.ts'
import { addressOf, listenOn } from './net.ts'

const real = process.getBuiltinModule('node:http')

/** Node keeps the parser of a connection until that is closed, and with it the server. */
type Parsed = { parser?: { close(): void } | null }

type RealServer = ReturnType<typeof real.createServer>

export function createServer(...given: Parameters<typeof real.createServer>): RealServer {
  const server = real.createServer(...given)
  let listener: SimListener | null = null
  const sockets = new Set<{ destroy(): unknown }>()
  const listen = (options: object | string, callback?: () => void) => {
    if (callback !== undefined) server.once('listening', callback)
    listenOn(
      {
        options: typeof options === 'string' ? { path: options } : options,
        highWaterMark: 65_536,
        mayConnect: () => true,
      },
      {
        accept(socket) {
          sockets.add(socket)
          socket.once('close', () => sockets.delete(socket))
          server.emit('connection', socket as never)
          machine().atSwitchOff.push(() => (socket as Parsed).parser?.close())
        },
        listening(chosen) {
          listener = chosen
          // Not to the server itself: it would watch its connections by timers of the real time.
          for (const one of server.rawListeners('listening')) if (isOurs(one)) Reflect.apply(one, server, [])
        },
        failed: (error) => server.emit('error', error as Error),
      },
    )
    return server
  }
  const own = new Set(server.rawListeners('listening'))
  const isOurs = (one: unknown) => !own.has(one as () => void)
  return Object.assign(server, {
    listen: listen as never,
    address: () => (listener === null ? null : addressOf(listener)) as never,
    closeAllConnections() {
      for (const socket of sockets) socket.destroy()
    },
    closeIdleConnections: () => undefined,
    close(callback?: (error?: Error) => void) {
      if (listener !== null) machine().network.unlisten(listener)
      listener = null
      if (callback !== undefined) machine().kernel.schedule(0, () => callback())
      return server
    },
  })
}

export const { Agent, request, STATUS_CODES, validateHeaderName } = real

const all = { ...real, createServer }
export default all
export { all as 'module.exports' }
