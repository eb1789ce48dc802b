// cut-proxy.ts: a TCP proxy on loopback whose connections a test can cut, or leave without an answer.

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export type CutProxy = {
  readonly port: number
  /** Ends every connection and accepts no other one until `mend`. */
  cut(): void
  /** Carries nothing more, and ends nothing: as a cable that is pulled. */
  freeze(): void
  /** Carries nothing more, and answers PINGREQ of MQTT: a link that is dead without an error. */
  answerPingsOnly(): void
  mend(): void
}

const pingReq = Buffer.from([0xc0, 0])
const pingResp = Buffer.from([0xd0, 0])

export async function startCutProxy(targetPort: number): Promise<CutProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isCut = false
  const server = createServer({ noDelay: true }, (near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
    const pair = [near, far] as const
    pairs.add(pair)
    near.pipe(far)
    far.pipe(near)
    for (const [one, other] of [pair, [far, near] as const]) {
      one.on('error', () => one.destroy())
      one.on('close', () => {
        pairs.delete(pair)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  function destroyAll(): void {
    for (const pair of pairs) for (const socket of pair) socket.destroy()
  }

  onTestFinished(() => {
    destroyAll()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      destroyAll()
    },
    freeze() {
      for (const pair of pairs)
        for (const socket of pair) {
          socket.unpipe()
          socket.pause()
        }
    },
    answerPingsOnly() {
      for (const [near, far] of pairs) {
        near.unpipe()
        far.unpipe()
        far.resume()
        near.on('data', (bytes: Buffer) => {
          if (bytes.includes(pingReq)) near.write(pingResp)
        })
      }
    },
    mend() {
      isCut = false
    },
  }
}
