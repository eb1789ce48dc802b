// listener-config.ts: the config of one listener of the embedded broker, `ingest.broker.listeners[]`.

import { hostname } from 'node:os'
import { isIP } from 'node:net'
import { z } from 'zod'
import type { Secret } from '../../../std/secret.ts'
import { pem, pemKey } from '../../../std/schema.ts'
import { accessSchema } from '../access/access-config.ts'
import type { ListenerOptions } from './listeners.ts'
import { certificateNames, tlsProblem, type ListenerTls } from './tls-server.ts'
import type { Subnet } from './proxy-connection.ts'
import { listenUrlOf } from './listen-url.ts'
import { webSocketSchema } from './websocket/websocket-config.ts'

export const listenerSchema = z
  .strictObject({
    url: z
      .string()
      .meta({
        format: 'uri',
        examples: ['mqtt://127.0.0.1:1883', 'mqtts://0.0.0.0:8883', 'wss://0.0.0.0:8084/mqtt'],
      })
      .transform((text, context) => {
        const address = listenUrlOf(text)
        if (typeof address !== 'string') return address
        context.addIssue({ code: 'custom', message: address })
        return z.NEVER
      })
      .describe(
        'Address on which devices connect: mqtt:// is MQTT over TCP, mqtts:// over TLS, ws:// over WebSocket, wss:// ' +
          'over WebSocket with TLS. The default ports are 1883, 8883, 8083 and 8084; with 0 the system chooses one. ' +
          'The host is an address of this machine, or 0.0.0.0 for all. The path of a WebSocket is /mqtt if the URL ' +
          'has none.',
      ),
    tls: z
      .strictObject({
        cert: pem('certificate').describe(
          'Certificate chain of the gateway: the path of a PEM file, or PEM text.',
        ),
        key: pemKey().describe(
          'Private key of the certificate: the path of a PEM file, `${file:PATH}` or `${env:NAME}`.',
        ),
        client_ca: pem('certificate')
          .optional()
          .describe(
            'Authorities of device certificates: the path of a PEM file, or PEM text. If set, a device without a certificate of ' +
              'one of them is refused. The mapping can use the name in the certificate.',
          ),
        client_crl: pem('crl')
          .optional()
          .describe(
            'Revocation lists of these authorities, one for each: the path of a PEM file, or PEM text. Certificates in them are refused. ' +
              'An expired list refuses every certificate of its authority.',
          ),
        certificate_name: z
          .enum(certificateNames)
          .default('cn')
          .describe(
            'Which part of the certificate is the name of the device: the common name, or the first DNS name, URI ' +
              'or e-mail address among the alternative names.',
          ),
      })
      .superRefine((tls, context) => {
        if (tls.client_crl !== undefined && tls.client_ca === undefined)
          context.addIssue({ code: 'custom', path: ['client_crl'], message: 'needs client_ca' })
        const problem = tlsProblem(tlsOptions(tls))
        if (problem !== null) context.addIssue({ code: 'custom', message: problem })
      })
      .optional()
      .describe(
        'Required for mqtts:// and wss://, not allowed for mqtt:// and ws://. Changed files are put in force for new connections; open ' +
          'ones stay.',
      ),
    proxy_protocol: z
      .strictObject({
        trusted: z
          .array(subnet())
          .min(1)
          .describe('Addresses of the balancers, as addresses or in CIDR form: `10.0.3.7`, `fd00:3::/64`.'),
      })
      .optional()
      .describe(
        'Set it where a balancer or proxy passes the connections on; otherwise all limits for an address count ' +
          'the balancer. Each connection must then come from a trusted address and begin with a header of the ' +
          'PROXY protocol before TLS, of version 2 or 1 (nginx sends version 1). The limits and the log use the address in the header. Other ' +
          'connections are closed and counted. HTTP headers such as X-Forwarded-For are ignored.',
      ),
    websocket: webSocketSchema.optional(),
    access: accessSchema
      .optional()
      .describe(
        'Which clients may connect here, instead of `ingest.broker.access`. Nothing of that applies.',
      ),
  })
  .superRefine(({ url, tls, websocket }, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message: `${message} ${url.scheme}:// listener` })
    const article = url.scheme.startsWith('m') ? 'an' : 'a'
    if (url.secure && tls === undefined) refuse('tls', `is required for ${article}`)
    if (!url.secure && tls !== undefined) refuse('tls', `is not allowed for ${article}`)
    if (url.path === null && websocket !== undefined) refuse('websocket', `is not allowed for ${article}`)
  })

export function listenerOptions(config: z.output<typeof listenerSchema>): ListenerOptions {
  const { url, tls, proxy_protocol, websocket } = config
  return {
    host: url.host,
    port: url.port,
    tls: tls === undefined ? null : tlsOptions(tls),
    ...(url.path !== null && {
      webSocket: {
        path: url.path,
        origins: websocket?.origins ?? [],
        hosts: new Set([hostname().toLowerCase(), ...(websocket?.hosts ?? [])]),
        isSecure: url.secure,
      },
    }),
    ...(proxy_protocol && { proxyTrusted: proxy_protocol.trusted }),
  }
}

type TlsConfig = {
  cert: string
  key: Secret
  client_ca?: string | undefined
  client_crl?: string | undefined
  certificate_name: ListenerTls['certificateName']
}

function tlsOptions({ cert, key, client_ca, client_crl, certificate_name }: TlsConfig): ListenerTls {
  return {
    cert,
    key,
    clientCa: client_ca ?? null,
    clientCrl: client_crl ?? null,
    certificateName: certificate_name,
  }
}

function subnet() {
  return z.string().transform((text, context): Subnet => {
    const [address = '', prefixText] = text.split('/')
    const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
    const prefix = prefixText === undefined ? bits : Number(/^\d{1,3}$/.exec(prefixText)?.[0])
    if (bits > 0 && prefix <= bits) return { address, prefix }
    context.addIssue({ code: 'custom', message: `must be an address or ADDRESS/PREFIX, found "${text}"` })
    return z.NEVER
  })
}
