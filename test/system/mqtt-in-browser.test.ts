// MQTT 5 from a page in a real browser: mqtt.js in Debian's chromium, over `wss` to the daemon, which is killed and
// started again meanwhile. On a machine without chromium it is skipped, with a message.

import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttps } from 'node:https'
import { createRequire } from 'node:module'
import { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { configText } from '../support/config-text.ts'
import { createAuthority, type Certificate } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/mosquitto.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon } from '../support/spawned-daemon.ts'

const executablePath = '/usr/bin/chromium'
const hasBrowser = existsSync(executablePath)
if (!hasBrowser) process.stderr.write('MQTT is not tried in a browser: chromium is not installed\n')

const bundle = createRequire(import.meta.url).resolve('mqtt/dist/mqtt.esm')
const countPerQos = 10

/** Publishes `from` to `to` in each QoS; a message that was not sent because the connection ended is sent again. */
const script = `
import mqtt from '/mqtt.js'
window.state = { connects: 0, acked: 0 }
// Some days ago: not too old, and not from the future.
const startMs = Date.now() - 7 * 86400000
window.begin = (url) => {
  const client = mqtt.connect(url, {
    protocolVersion: 5, clientId: 'browser', clean: false, reconnectPeriod: 100,
    properties: { sessionExpiryInterval: 3600, userProperties: { vendor: 'page' } },
  })
  client.on('connect', () => { state.connects += 1 })
  client.on('error', () => undefined)
  const properties = { contentType: 'application/json', userProperties: { shift: 'night' } }
  const send = (text, qos) => client.publishAsync('t/browser-' + qos, text, { qos, properties })
    .then(() => { state.acked += 1 }, () => (qos === 0 ? undefined : send(text, qos)))
  window.publish = (from, to) => {
    for (let number = from; number < to; number += 1)
      for (const qos of [0, 1, 2])
        send(JSON.stringify({ ts: startMs + number * 1000, lat: number / 1e4, lon: 13.4 }), qos)
  }
}
window.attempt = (url) => new Promise((resolve) => {
  const socket = new WebSocket(url, 'mqtt')
  socket.onopen = () => { socket.close(); resolve('open') }
  socket.onclose = ({ code }) => resolve(code)
})
window.loaded = true
`

/** A page of two origins: as `localhost` and as `127.0.0.1`. */
async function servePage({ cert, key }: Certificate): Promise<number> {
  const library = await readFile(bundle)
  const files: Readonly<Record<string, readonly [string, string | Buffer]>> = {
    '/': ['text/html', '<!doctype html><script type="module" src="/page.js"></script>'],
    '/page.js': ['text/javascript', script],
    '/mqtt.js': ['text/javascript', library],
  }
  const server = createHttps({ cert, key }, ({ url = '' }, response) => {
    const [type, body] = files[url] ?? ['text/plain', '']
    response.setHeader('content-type', type)
    response.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** The browser trusts this one key, and no other certificate that it does not know. */
async function startBrowser({ cert }: Certificate) {
  const spki = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' })
  const trusted = createHash('sha256').update(spki).digest('base64')
  const flags = ['headless', 'no-sandbox', 'disable-gpu', 'no-first-run', 'disable-background-networking']
  flags.push(`ignore-certificate-errors-spki-list=${trusted}`)
  const browser = await chromium.launch({ executablePath, args: flags.map((flag) => `--${flag}`) })
  onTestFinished(() => browser.close())
  return browser
}

test.skipIf(!hasBrowser)(
  'a page publishes by MQTT 5 over wss through a kill of the daemon, and a page of another origin may not',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gateway-browser-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const { sandbox, url: serviceUrl } = await startSandbox()
    const certificate = createAuthority().issue()
    await writeFile(join(folder, 'cert.pem'), certificate.cert)
    await writeFile(join(folder, 'key.pem'), certificate.key, { mode: 0o600 })
    const pagePort = await servePage(certificate)
    const port = await freePort()
    const broker = `wss://localhost:${port}/mqtt`
    const config = join(folder, 'gateway.yaml')
    await writeFile(
      config,
      configText({
        ingest: `
  broker:
    listeners:
      - url: wss://127.0.0.1:${port}/mqtt
        tls: { cert: "\${file:./cert.pem}", key: "\${file:./key.pem}" }
        websocket: { origins: ["https://localhost:${pagePort}"] }
    access: { anonymous: true }`,
        sources: `
  - name: all
    topic: t/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: lat }
      longitude: { path: lon }`,
        delivery: 'batch: { max_payloads: 100, linger: 5ms }',
      })(serviceUrl),
    )
    let daemon = await startSpawnedDaemon(config)
    const browser = await startBrowser(certificate)
    const page = await browser.newPage()
    await page.goto(`https://localhost:${pagePort}/`)
    await page.waitForFunction('window.loaded')
    await page.evaluate(`begin('${broker}')`)
    await page.waitForFunction('state.connects === 1')
    await page.evaluate(`publish(0, ${countPerQos})`)
    // QoS 0 too: the connection stood.
    await page.waitForFunction(`state.acked === ${countPerQos * 3}`)
    await page.evaluate(`publish(${countPerQos}, ${countPerQos * 2})`)
    await daemon.kill()
    await page.evaluate(`publish(${countPerQos * 2}, ${countPerQos * 3})`)
    daemon = await startSpawnedDaemon(config)
    await page.waitForFunction('state.connects === 2')

    const arrived = () =>
      sandbox.received({ limit: 100_000 }).map(({ payload }) => {
        const { id } = payload['deviceIdentifier'] as { id: string }
        return `${id} ${Math.round(Number(/"latitude":(-?[\d.]+)/.exec(JSON.stringify(payload))?.[1]) * 1e4)}`
      })
    const numbers = Array.from({ length: countPerQos * 3 }, (_, number) => number)
    const expected = [1, 2].flatMap((qos) => numbers.map((number) => `browser-${qos} ${number}`))
    expected.push(...numbers.slice(0, countPerQos).map((number) => `browser-0 ${number}`))
    await eventually(() => {
      const found = new Set(arrived())
      return expected.every((one) => found.has(one))
    })
    // Also those of QoS 0 that the kill did not lose.
    const found = arrived()
    expect(new Set(found).size).toBe(found.length)
    expect(sandbox.stats()).toMatchObject({ payloadsFailed: 0 })

    const other = await browser.newPage()
    const complaints: string[] = []
    other.on('console', (message) => complaints.push(message.text()))
    await other.goto(`https://127.0.0.1:${pagePort}/`)
    await other.waitForFunction('window.loaded')
    expect(await other.evaluate(`attempt('${broker}')`)).toBe(1006)
    expect(complaints.join()).toContain('403')
    expect(await page.evaluate(`attempt('${broker}')`)).toBe('open')
    await daemon.stop()
  },
  60_000,
)
