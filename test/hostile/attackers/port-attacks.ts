// port-attacks.ts: attackers of the TLS handshake and of the ops port.

import { connect as connectTls } from 'node:tls'
import type { Attack } from './attack-kit.ts'

/** The first bytes of a ClientHello of 500 bytes. */
const helloStart = Buffer.from([0x16, 3, 1, 1, 0xf4, 1, 0, 1, 0xf0, 3, 3])

const paths = ['/status', '/metrics', '/devices', '/dead-letters', '/quarantine', '/ledger', '/batches', '/x']

export const portAttacks: readonly Attack[] = [
  {
    name: 'half-hellos',
    does: 'opens 3,000 connections of as many addresses and sends the first bytes of a TLS handshake',
    run: (kit) =>
      kit.crowd(3000, async (index) => {
        const socket = await kit.open({ stranger: index + 1, raw: true })
        if (socket === null) return kit.pause(200)
        await kit.write(socket, helloStart)
        while (!kit.over && !socket.destroyed) await kit.pause(250)
        return kit.pause(200)
      }),
  },
  {
    name: 'handshakes',
    does: 'makes TLS handshakes over 16 connections and leaves, as fast as it can',
    needs: 'tls',
    run: (kit) =>
      kit.crowd(16, async () => {
        const socket = await kit.open({ upgrades: false })
        if (socket === null) return kit.pause(20)
        socket.destroy()
        return undefined
      }),
  },
  {
    name: 'renegotiations',
    does: 'asks for a new TLS 1.2 handshake again and again, over 8 connections',
    needs: 'tls',
    run: (kit) =>
      kit.crowd(8, async () => {
        const from = { localAddress: '127.66.0.1' }
        const to = { port: kit.target.port, host: '127.0.0.1', ...from }
        const socket = connectTls({ ...to, rejectUnauthorized: false, maxVersion: 'TLSv1.2' })
        socket.on('error', () => socket.destroy())
        await new Promise<void>((resolve) => {
          const renew = () => {
            kit.counts.opened += 1
            if (kit.over || !socket.renegotiate({}, (error) => (error ? socket.destroy() : renew())))
              socket.destroy()
          }
          socket.once('secureConnect', renew)
          socket.once('close', () => resolve())
        })
        await kit.pause(20)
      }),
  },
  {
    name: 'ops-idle',
    does: 'opens 200 connections to the ops port and sends nothing, or half a request',
    run: (kit) =>
      kit.crowd(200, async (index) => {
        const socket = await kit.open({ raw: true, port: kit.target.opsPort, asNeighbour: true })
        if (socket === null) return kit.pause(100)
        if (index % 2 === 0)
          await kit.write(socket, Buffer.from('GET /status HTTP/1.1\r\nHost: localhost\r\n'))
        while (!kit.over && !socket.destroyed) await kit.pause(100)
        return undefined
      }),
  },
  {
    name: 'ops-requests',
    does: 'requests every path of the ops port over 16 connections and waits for no answer',
    run: (kit) =>
      kit.crowd(16, async () => {
        const socket = await kit.open({ raw: true, port: kit.target.opsPort, asNeighbour: true })
        if (socket === null) return kit.pause(50)
        const requests = paths.map(
          (path) => `GET ${path} HTTP/1.1\r\nHost: localhost:${kit.target.opsPort}\r\n\r\n`,
        )
        while (await kit.write(socket, Buffer.from(requests.join('')))) await kit.pause(1)
        socket.destroy()
        return undefined
      }),
  },
  {
    name: 'ops-reads',
    does: 'requests every path of the ops port over 48 connections, one after another',
    run: (kit) =>
      kit.crowd(48, async (index) => {
        let turn = index
        const ask = () => {
          turn += 1
          const path = paths[turn % paths.length] ?? '/'
          return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost:${kit.target.opsPort}\r\n\r\n`)
        }
        const socket = await kit.open({
          raw: true,
          port: kit.target.opsPort,
          asNeighbour: true,
          // The end of an answer is not looked for: a long one comes in several chunks, and then the gateway ends it.
          onChunk: () => void (socket && kit.write(socket, ask())),
        })
        if (socket === null) return kit.pause(50)
        await kit.write(socket, ask())
        while (!kit.over && !socket.destroyed) await kit.pause(50)
        return undefined
      }),
  },
]
