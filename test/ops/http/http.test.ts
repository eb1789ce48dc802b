import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startedOps } from '../../support/ops-world.ts'
import { exchange } from '../../support/raw-http.ts'

let ops: Awaited<ReturnType<typeof startedOps>>
beforeAll(async () => void (ops = await startedOps()))
afterAll(() => ops[Symbol.asyncDispose]())

describe('over HTTP', () => {
  test('a connection that sends a request before the answer to the last one is closed', async () => {
    const { host } = new URL(ops.url)
    expect(await exchange(ops.url, `GET /status HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(1000))).toBe('')
    const others = await Promise.all(Array.from({ length: 20 }, () => fetch(`${ops.url}/status`)))
    expect(others.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
  })

  test('a connection carries one request after another', async () => {
    const url = new URL(ops.url)
    const socket = connect(Number(url.port), '127.0.0.1')
    for (const path of ['/status', '/healthz', '/metrics', '/status']) {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`)
      let text = ''
      const isWhole = () => {
        const [head = '', body] = text.split('\r\n\r\n')
        return body !== undefined && body.length >= Number(/content-length: (\d+)/i.exec(head)?.[1])
      }
      await new Promise<void>((resolve) => {
        const take = (chunk: Buffer) => {
          text += chunk.toString('latin1')
          if (!isWhole()) return
          socket.off('data', take)
          resolve()
        }
        socket.on('data', take)
      })
      expect(text).toMatch(/^HTTP\/1\.1 200/)
    }
    socket.destroy()
  })
})

test('an idle client does not delay the stop: its connection is closed, and then the port', async () => {
  const { ops: stopped, url } = await startedOps()
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await new Promise((resolve) => socket.once('connect', resolve))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  await stopped.stop()
  await closed
  await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed')
})
