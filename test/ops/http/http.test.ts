import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { get, opsWorld } from '../../support/ops-world.ts'

describe('over HTTP', () => {
  test('the root lists the paths', async () => {
    await using world = opsWorld()
    await world.ops.start()
    expect((await get(world.ops.url(), '/')).text).toContain('/status')
    expect((await get(world.ops.url(), '/?x=1')).status).toBe(400)
  })

  test('an unknown path and another method are answered with what, why and what to do', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const unknown = await get(world.ops.url(), '/etc/passwd')
    expect(unknown.status).toBe(404)
    expect(Object.keys(JSON.parse(unknown.text) as object)).toEqual(
      'type title status detail instance code what why act nearest'.split(' '),
    )
    const post = await get(world.ops.url(), '/status', { method: 'DELETE' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  test('HEAD gives the headers only', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const head = await get(world.ops.url(), '/healthz', { method: 'HEAD' })
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', '3'])
  })

  test('a request with a body is refused and its connection closed', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const status = await new Promise<[number | undefined, string | undefined]>((resolve, reject) => {
      const sent = request(
        `${world.ops.url()}/status`,
        { method: 'GET', headers: { 'content-length': 5 } },
        (response) => {
          response.resume()
          resolve([response.statusCode, response.headers.connection])
        },
      )
      sent.on('error', reject)
      sent.write('hello')
      sent.end()
    })
    expect(status).toEqual([413, 'close'])
  })

  test('a connection that sends a request before the answer to the last one is closed', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const url = new URL(world.ops.url() ?? '')
    const get = `GET /status HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`
    const socket = connect(Number(url.port), '127.0.0.1', () => socket.write(get.repeat(1000)))
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString('latin1')))
    socket.on('error', () => undefined)
    await new Promise((resolve) => socket.once('close', resolve))
    expect(text).toBe('')
    const others = await Promise.all(Array.from({ length: 20 }, () => fetch(`${url.href}status`)))
    expect(others.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
  })

  test('a connection carries one request after another', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const url = new URL(world.ops.url() ?? '')
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

  test('headers without end are refused', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const { port } = new URL(world.ops.url() ?? '')
    const answer = await new Promise<string>((resolve) => {
      let text = ''
      const socket = connect(Number(port), '127.0.0.1', () =>
        socket.write(`GET / HTTP/1.1\r\nx: ${'a'.repeat(20_000)}`),
      )
      socket.on('data', (chunk) => (text += chunk.toString('latin1')))
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(text))
    })
    expect(answer).toMatch(/^HTTP\/1\.1 431 /)
    expect(answer).toContain('"code":"HEAD_TOO_LARGE"')
  })

  test('what is not HTTP is refused with a problem, and the connection closed', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const { port } = new URL(world.ops.url() ?? '')
    const answer = await new Promise<string>((resolve) => {
      let text = ''
      const socket = connect(Number(port), '127.0.0.1', () => socket.write('nonsense\r\n\r\n'))
      socket.on('data', (chunk) => (text += chunk.toString('latin1')))
      socket.on('close', () => resolve(text))
    })
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(head).toContain('content-type: application/problem+json')
    expect(head).toContain('x-content-type-options: nosniff')
    expect(JSON.parse(body)).toMatchObject({ status: 400, code: 'REQUEST_MALFORMED' })
  })

  test('connections are bounded', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const { port } = new URL(world.ops.url() ?? '')
    const sockets = Array.from({ length: 80 }, () => connect(Number(port), '127.0.0.1'))
    const closed = await new Promise<number>((resolve) => {
      let ended = 0
      for (const socket of sockets) {
        socket.on('error', () => undefined)
        socket.on('close', () => {
          ended += 1
          if (ended === 16) resolve(ended)
        })
      }
    })
    expect(closed).toBe(16)
    for (const socket of sockets) socket.destroy()
  })
})

describe('an idle client', () => {
  test('does not delay the stop: its connection is closed', async () => {
    const world = opsWorld()
    await world.ops.start()
    const { port } = new URL(world.ops.url() ?? '')
    const socket = connect(Number(port), '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => undefined)
    await world.ops.stop()
    await closed
    expect(socket.destroyed).toBe(true)
  })
})
