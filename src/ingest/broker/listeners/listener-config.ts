// listener-config.ts: the config of one listener of the embedded broker, `ingest.broker.listeners[]`.

import { isIP } from 'node:net'
import { z } from 'zod'
import type { Secret } from '../../../std/secret.ts'
import { secret } from '../../../std/schema.ts'
import { accessSchema } from '../access/access-config.ts'
import type { ListenerOptions } from './listeners.ts'
import { certificateNames, tlsProblem, type ListenerTls } from './tls-server.ts'
import type { Subnet } from './proxy-connection.ts'

export const listenerSchema = z
  .strictObject({
    url: z
      .string()
      .meta({ format: 'uri', examples: ['mqtt://127.0.0.1:1883', 'mqtts://0.0.0.0:8883'] })
      .transform((text, context) => {
        const address = parseUrl(text)
        if (typeof address !== 'string') return address
        context.addIssue({ code: 'custom', message: address })
        return z.NEVER
      })
      .describe(
        'Address on which devices connect: mqtt:// is MQTT 3.1.1 over TCP, mqtts:// over TLS. The ' +
          'default port is 1883 or 8883; with 0 the system chooses one. The host is an address of this ' +
          'machine, or 0.0.0.0 for all.',
      ),
    tls: z
      .strictObject({
        cert: z
          .string()
          .min(1)
          .describe('Certificate chain of the gateway as PEM text, usually `${file:/etc/.../cert.pem}`.'),
        key: secret().describe(
          'Private key of the certificate as PEM text, usually `${file:/etc/.../key.pem}`.',
        ),
        client_ca: z
          .string()
          .min(1)
          .optional()
          .describe(
            'Authorities of device certificates as PEM text. If set, a device without a certificate of ' +
              'one of them is refused. The mapping can use the name in the certificate.',
          ),
        client_crl: z
          .string()
          .min(1)
          .optional()
          .describe(
            'Revocation lists of these authorities as PEM text, one for each. Certificates in them are refused. ' +
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
        'Required for mqtts://, not allowed for mqtt://. Changed files are put in force for new connections; open ' +
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
          'PROXY protocol, version 2, before TLS. The limits and the log use the address in the header. Other ' +
          'connections are closed and counted.',
      ),
    access: accessSchema
      .optional()
      .describe(
        'Which clients may connect here, instead of `ingest.broker.access`. Nothing of that applies.',
      ),
  })
  .superRefine(({ url, tls }, context) => {
    if (url.secure && tls === undefined)
      context.addIssue({ code: 'custom', path: ['tls'], message: 'is required for an mqtts:// listener' })
    if (!url.secure && tls !== undefined)
      context.addIssue({ code: 'custom', path: ['tls'], message: 'is not allowed for an mqtt:// listener' })
  })

export function listenerOptions(config: z.output<typeof listenerSchema>): ListenerOptions {
  const { url, tls, proxy_protocol } = config
  return {
    host: url.host,
    port: url.port,
    tls: tls === undefined ? null : tlsOptions(tls),
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

type ListenUrl = { secure: boolean; host: string; port: number }

/** The URL of a listener, or what is wrong with it. */
function parseUrl(text: string): ListenUrl | string {
  const match = /^(mqtts?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@?#[\]]+))(?::(\d{1,5}))?\/?$/.exec(text)
  const host = match?.[2] ?? match?.[3]
  if (!match || host === undefined)
    return `must be mqtt://HOST:PORT or mqtts://HOST:PORT without path, query or password, found "${text}"`
  const secure = match[1] === 'mqtts'
  const port = match[4] === undefined ? (secure ? 8883 : 1883) : Number(match[4])
  if (port > 65_535) return `must have a port of 0 to 65535, found ${port}`
  return { secure, host, port }
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
