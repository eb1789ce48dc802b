// control-client.ts: one HTTP request to the control socket of the daemon, as the command line makes it.

import type { Network } from '../machine/network.ts'

export const controlSocket = '/sim/run/control.sock'

export type Reply = { status: number; value: unknown }

/** `done` gets null where there is no answer: nobody listens, or the connection ends before. */
export function ask(
  network: Network,
  { method, path }: { method: 'GET' | 'POST'; path: string },
  done: (reply: Reply | null) => void,
): void {
  const end = network.world.connect({ path: controlSocket })
  if (end === null) return done(null)
  let received = Buffer.alloc(0)
  let isDone = false
  const finish = (reply: Reply | null) => {
    if (isDone) return
    isDone = true
    end.end()
    done(reply)
  }
  end.onData = (bytes) => {
    received = Buffer.concat([received, bytes])
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = received.toString('latin1', 0, headEnd)
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? Number.NaN)
    const body = received.subarray(headEnd + 4)
    if (Number.isNaN(length) || body.length < length) return
    const status = Number(head.slice(9, 12))
    finish({ status, value: JSON.parse(body.subarray(0, length).toString() || 'null') })
  }
  end.onClose = () => finish(null)
  const request = `${method} ${path} HTTP/1.1\r\nhost: gateway\r\naccept: application/json\r\ncontent-length: 0\r\n\r\n`
  end.write(Buffer.from(request))
}
