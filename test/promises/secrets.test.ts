import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

const secretKey = 'a-secret-key-that-nobody-may-ever-see'
const token = 'a-session-token-that-nobody-may-see'

describe('secrets never shown', () => {
  test('the log, the status and the metrics of a gateway whose key is refused do not show it', async () => {
    const pipeline = await startPipeline({
      sandbox: { accounts: [{ accessKeyId: 'KNOWN', secret: new Secret('another') }] },
      sections: { log: '{ level: trace }' },
      deps: {
        env: { AWS_ACCESS_KEY_ID: 'KNOWN', AWS_SECRET_ACCESS_KEY: secretKey, AWS_SESSION_TOKEN: token },
      },
    })
    const device = await pipeline.device('truck-1')
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    await device.acked(1)
    await pipeline.until(() =>
      pipeline.status().conditions.some(({ code }) => code === 'ENDPOINT_UNAUTHORIZED'),
    )
    const { ops } = pipeline.gateway.addresses
    const pages = await Promise.all(
      ['/', '/status', '/metrics', '/healthz', '/readyz'].map(async (path) =>
        (await fetch(ops + path)).text(),
      ),
    )
    await pipeline.gateway.stop('the test ends')
    const shown = [pipeline.log(), ...pages, JSON.stringify(pipeline.events)].join('\n')
    expect(shown).toContain('ENDPOINT_UNAUTHORIZED')
    expect(shown).not.toContain(secretKey)
    expect(shown).not.toContain(token)
    // Not as a part of an authorization header either.
    expect(shown).not.toMatch(/Signature=/)
  })
})
