// Secrets and certificates of delivery that are renewed under a running gateway.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { configText } from '../support/config-text.ts'
import { createAuthority, type Certificate } from '../support/certificates.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, type Pipeline } from '../support/pipeline-world.ts'
import { startTlsFront } from '../support/tls-service.ts'

type Options = {
  /** YAML in the section delivery, beside the URL. */
  delivery: string
  files: Record<string, string>
  baseUrl?: (url: string) => string
  listener?: string
}

async function start({ delivery, files, baseUrl = (url) => url, listener = '' }: Options) {
  const folder = await newFolder()
  const write = async (name: string, text: string) => writeFile(join(folder, name), text, { mode: 0o600 })
  for (const [name, text] of Object.entries(files)) await write(name, text)
  const config = (url: string, { ledger = '', ops = '127.0.0.1:0', to = baseUrl(url) } = {}) =>
    configText({
      broker: `{ listeners: [{ url: "mqtt://127.0.0.1:0" }${listener}], access: { anonymous: true } }`,
      delivery: `batch: { linger: 20ms }, backoff: { min: 10ms, max: 10m }, ${delivery}`,
      more: ledger === '' ? '' : `ledger: { retention: ${ledger} }`,
    })(to).replace('listen: "127.0.0.1:0"', `listen: "${ops}"`)
  const pipeline = await startPipeline({ folder, config })
  let sent = 0
  return {
    pipeline,
    write,
    edit: (changes: Parameters<typeof config>[1]) =>
      writeFile(join(folder, 'gateway.yaml'), config(pipeline.baseUrl, changes)),
    async publish() {
      sent += 1
      await pipeline.publish(`truck-${sent}`, messageOf(sent))
    },
    delivered: () => pipeline.until(() => pipeline.status().totals.delivered === sent),
  }
}

const restarts = (pipeline: Pipeline) => pipeline.condition('RESTART_NEEDED')?.causes ?? []

/** Publishes until the endpoint is not available, with a next try in minutes. */
async function untilUnavailable({ pipeline, publish }: Awaited<ReturnType<typeof start>>): Promise<void> {
  for (let n = 0; n < 6; n += 1) await publish()
  await pipeline.until(() => (pipeline.status().providers[0]?.endpoint ?? 'available') !== 'available')
}

describe('a renewed secret', () => {
  const basic = (password: string) => `Basic ${Buffer.from(`gw:${password}`).toString('base64')}`

  test('of the proxy is used at once, and the waiting data is delivered, without a restart', async () => {
    const proxy = await startConnectProxy({ authorization: basic('spring') })
    const world = await start({
      delivery: `proxy: "${proxy.url}", proxy_auth: { user: gw, password: "\${file:password}" }`,
      files: { password: 'spring' },
    })
    const { pipeline, publish, delivered, write } = world
    await publish()
    await delivered()
    proxy.require(basic('summer'))
    await untilUnavailable(world)
    expect(pipeline.condition('ENDPOINT_UNAVAILABLE')?.act).toContain('Delivery resumes automatically')
    await write('password', 'summer')
    await delivered()
    expect(restarts(pipeline)).toEqual([])
    expect(await pipeline.gateway.reload('test')).toMatchObject({ kind: 'reloaded', restartNeeded: [] })
    expect(JSON.stringify([pipeline.events, pipeline.status()]) + pipeline.log()).not.toMatch(/spring|summer/)
  })

  test('of the signing keys in the config is used at once, and the waiting data is delivered', async () => {
    const world = await start({
      delivery:
        'credentials: { source: keys, access_key_id: "${file:id}", secret_access_key: "${file:secret}" }',
      files: { id: sandboxAccount.accessKeyId, secret: 'a secret of last year' },
    })
    const { pipeline, publish, delivered, write } = world
    await publish()
    await pipeline.until(() => pipeline.status().providers[0]?.endpoint === 'unauthorized')
    await write('secret', sandboxAccount.secret.reveal())
    await delivered()
    expect(restarts(pipeline)).toEqual([])
  })
})

describe('a renewed certificate', () => {
  const dayMs = 86_400_000
  const services = createAuthority('Services')
  const clients = createAuthority('Clients')
  const issue = (name: string, days: number) =>
    clients.issue({ names: [name], until: new Date(Date.now() + days * dayMs) })
  const filesOf = ({ cert, key }: Certificate) => ({ 'cert.pem': cert, 'key.pem': key })
  const tls = 'tls: { ca: ca.pem, cert: cert.pem, key: key.pem }'

  async function startWithTls(listener?: Pick<Options, 'listener' | 'files'>) {
    const front = await startTlsFront(services.issue(), { clientCa: clients.ca })
    const world = await start({
      delivery: tls,
      ...listener,
      files: { 'ca.pem': services.ca, ...filesOf(issue('depot-1', 5)), ...listener?.files },
      baseUrl: (url) => (front.lead(url), front.url),
    })
    const renew = async (name: string) => {
      for (const [file, text] of Object.entries(filesOf(issue(name, 90)))) await world.write(file, text)
    }
    return { ...world, front, renew }
  }

  test('of the gateway is shown to the service at the next request, when the condition of the old one ends', async () => {
    const { pipeline, front, publish, delivered, renew } = await startWithTls()
    await publish()
    await delivered()
    expect(pipeline.condition('CERTIFICATE_EXPIRES')).toMatchObject({ key: 'delivery delivery.tls' })
    await renew('depot-2')
    await pipeline.until(() => pipeline.condition('CERTIFICATE_EXPIRES') === undefined)
    await publish()
    await delivered()
    expect(front.clientNames).toEqual(['depot-1', 'depot-2'])
    await pipeline.until(() => front.open() === 1)
    await pipeline.gateway.reload('nothing changed')
    await publish()
    await delivered()
    expect(front.clientNames).toHaveLength(2)
    expect(restarts(pipeline)).toEqual([])
  })

  test('of the authority of the service is trusted at once, and the waiting data is delivered', async () => {
    const world = await startWithTls()
    const { pipeline, front, publish, delivered, write } = world
    await publish()
    await delivered()
    const successors = createAuthority('Successors')
    front.renew(successors.issue())
    front.close()
    await untilUnavailable(world)
    await write('ca.pem', successors.ca)
    await delivered()
    expect(restarts(pipeline)).toEqual([])
  })

  test('is taken over beside a change that needs a restart; for another service it waits for it, and so does the condition', async () => {
    const { pipeline, front, publish, delivered, renew, edit } = await startWithTls()
    await edit({ ledger: '8d' })
    await pipeline.until(() => restarts(pipeline).length === 1)
    expect(restarts(pipeline)).toEqual(['ledger.retention'])

    await edit({ to: `${front.url}/other` })
    await renew('depot-2')
    await pipeline.gateway.reload('test')
    expect(pipeline.condition('CERTIFICATE_EXPIRES')).toMatchObject({
      act: expect.stringContaining('RESTART_NEEDED') as string,
    })
    await publish()
    await delivered()
    expect(front.clientNames).toEqual(['depot-1'])

    await edit({ ledger: '8d' })
    await pipeline.until(() => pipeline.condition('CERTIFICATE_EXPIRES') === undefined)
    await publish()
    await delivered()
    expect(front.clientNames).toEqual(['depot-1', 'depot-2'])
    expect(await pipeline.gateway.reload('test')).toMatchObject({ restartNeeded: ['ledger.retention'] })
  })

  test('of a listener ends its condition also while the port of ops needs a restart', async () => {
    const first = services.issue({ until: new Date(Date.now() + 5 * dayMs) })
    const { pipeline, write, edit } = await startWithTls({
      listener: ', { url: "mqtts://127.0.0.1:0", tls: { cert: own.pem, key: own-key.pem } }',
      files: { 'own.pem': first.cert, 'own-key.pem': first.key },
    })
    const keys = () =>
      pipeline.status().conditions.flatMap(({ code, key }) => (code === 'CERTIFICATE_EXPIRES' ? [key] : []))
    expect(keys()).toHaveLength(2)
    await edit({ ops: '127.0.0.1:65000' })
    await pipeline.until(() => restarts(pipeline).length === 1)
    const second = services.issue({ until: new Date(Date.now() + 90 * dayMs) })
    await write('own.pem', second.cert)
    await write('own-key.pem', second.key)
    await pipeline.until(() => keys().length === 1)
    expect(keys()).toEqual(['delivery delivery.tls'])
  })
})
