// A Mosquitto that bridges into the daemon with the protocol level 0x84 (try_private), over TCP and over TLS: the daemon
// is killed and stopped, Mosquitto restarts, the network is cut and freezes. Nothing is lost that Mosquitto acknowledged
// to the publisher: it keeps what it cannot send.
//
// Second effects: what the daemon stored, and whose PUBACK the kill prevented, Mosquitto sends again. Its device time
// gives the same payloadId, which the dedup window stores once.
//
// By mqtts a run in twelve can hang: Mosquitto 2.0.11 then loops without a system call (strace shows none), with our end
// of the connection closed and its own publisher unread. docs/bridges.md says so. Repeat the run.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startPublisher, statusOf, writeBridgeConfig } from '../support/bridge-daemons.ts'
import { createAuthority } from '../support/certificates.ts'
import { startCutProxy } from '../support/cut-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { freePort, hasMosquitto, startMosquitto } from '../support/mosquitto.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon } from '../support/spawned-daemon.ts'

/** Each takes a minute. */
const rounds = 1

describe.skipIf(!hasMosquitto)('a Mosquitto that bridges into the daemon', () => {
  test.each(['mqtt', 'mqtts'])('by %s loses nothing over restarts on both sides', async (scheme) => {
    const { sandbox, url: serviceUrl } = await startSandbox({})
    const authority = createAuthority()
    const { cert, key } = authority.issue()
    const folder = await newFolder()
    for (const [name, text] of Object.entries({ 'cert.pem': cert, 'key.pem': key }))
      await writeFile(join(folder, name), text, { mode: 0o600 })
    const port = await freePort()
    const tls = scheme === 'mqtts' ? ', tls: { cert: "${file:./cert.pem}", key: "${file:./key.pem}" }' : ''
    const config = await writeBridgeConfig({
      clientId: '',
      brokerPort: 0,
      serviceUrl,
      folder,
      bridges: '',
      listeners: `{ url: "${scheme}://127.0.0.1:${port}"${tls} }`,
    })
    let daemon = await startSpawnedDaemon(config)
    const proxy = await startCutProxy(port)
    const mosquitto = await startMosquitto({
      files: { 'ca.pem': authority.ca },
      lines: [
        'connection gateway',
        `address localhost:${proxy.port}`,
        'topic t/# out 1',
        'try_private true',
        'cleansession false',
        'remote_clientid depot-bridge',
        'keepalive_interval 5',
        'restart_timeout 1',
        'bridge_protocol_version mqttv311',
        ...(tls === '' ? [] : ['bridge_cafile %d/ca.pem']),
      ],
    })
    const publisher = await startPublisher(mosquitto.port, 10)
    let duplicates = 0
    let notTaken = 0
    const count = async () => {
      const { totals } = await statusOf(daemon)
      duplicates += totals.duplicates
      notTaken += totals.unmappable + totals.dropped
    }
    const more = async (messages: number) => {
      const from = publisher.acked
      await eventually(() => publisher.acked >= from + messages)
    }
    /** Everything that was published until now has arrived. */
    const arrived = async () => {
      const from = publisher.acked
      await eventually(() => sandbox.stats().distinctPayloadIds >= from)
    }
    await arrived()
    for (let round = 0; round < rounds; round += 1) {
      await more(500)
      await daemon.kill()
      await more(500)
      daemon = await startSpawnedDaemon(config)
      await arrived()
      await mosquitto.stop()
      await mosquitto.start()
      await more(500)
      proxy.cut()
      await more(500)
      proxy.mend()
      await arrived()
      await count()
      await daemon.stop()
      await more(500)
      await mosquitto.stop()
      await mosquitto.start()
      daemon = await startSpawnedDaemon(config)
      await arrived()
      proxy.freeze()
      await more(500)
      await arrived()
    }
    await publisher.stop()
    await eventually(() => sandbox.stats().distinctPayloadIds >= publisher.acked)
    await count()
    const { distinctPayloadIds, duplicatesAcrossBatches: twice } = sandbox.stats()
    process.stderr.write(
      `bridges: Mosquitto into the daemon by ${scheme}: ${publisher.acked} published, ${distinctPayloadIds} payloadIds, ` +
        `${duplicates} sent again and stored once, ${twice} second effects\n`,
    )
    expect({ lost: publisher.acked - distinctPayloadIds, notTaken, twice }).toEqual({
      lost: 0,
      notTaken: 0,
      twice: 0,
    })
  })
})
