// one-message.ts: one MQTT message as a device sends it: connect, publish with QoS 1, PUBACK, disconnect.

import { connect } from 'mqtt'
import { GatewayError, messageOf } from '../../std/gateway-error.ts'
import { shownUrl } from '../../std/shown-url.ts'
import type { MqttVersion } from '../terminal/option-values.ts'

type Message = {
  topic: string
  bytes: Buffer
  client: string
  stop: AbortSignal
  /** Of MQTT 5. */
  properties?: { userProperties?: Record<string, string | string[]>; contentType?: string }
}
type Broker = { url: string; protocolVersion: MqttVersion; username?: string; password?: string; ca?: Buffer }

const timeoutMs = 10_000

/** Resolves with the time until the PUBACK. Rejects with BROKER_UNREACHABLE. */
export function publishOne(
  { topic, bytes, client: clientId, stop, properties }: Message,
  { url, ...login }: Broker,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const client = connect(url, {
      clientId,
      clean: true,
      reconnectPeriod: 0,
      connectTimeout: timeoutMs,
      ...login,
    })
    let isConnected = false
    const timer = setTimeout(() => fail(late(isConnected)), timeoutMs)
    const onStop = () => fail('stopped')
    stop.addEventListener('abort', onStop, { once: true })
    const end = () => {
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
    }
    const fail = (why: string, cause?: unknown) => {
      end()
      client.end(true)
      reject(refused(url, { isConnected, why, cause }))
    }
    client.on('connect', () => {
      isConnected = true
      const startedMs = performance.now()
      client.publish(topic, bytes, { qos: 1, ...(properties && { properties }) }, (error) => {
        if (error) return fail(messageOf(error), error)
        end()
        client.end()
        resolve(performance.now() - startedMs)
      })
    })
    client.on('error', (error) => fail(messageOf(error), error))
    client.on('close', () => fail('the broker closed the connection'))
  })
}

function late(isConnected: boolean): string {
  return isConnected ? `no PUBACK within ${timeoutMs / 1000} s` : `no CONNACK within ${timeoutMs / 1000} s`
}

function refused(
  url: string,
  { isConnected, why, cause }: { isConnected: boolean; why: string; cause: unknown },
): GatewayError {
  return new GatewayError('BROKER_UNREACHABLE', {
    what: isConnected
      ? `The broker ${shownUrl(url)} did not acknowledge the message.`
      : `Cannot connect to the broker ${shownUrl(url)}.`,
    why: `${why.replace(/\.$/, '')}.`,
    act: isConnected
      ? 'A rule for topics or a full spool can be the cause: see `telemetry-gateway status` and the log.'
      : 'Check --broker, --username and --password-file, for mqtts and wss also --ca, and that the daemon runs.',
    cause,
  })
}
