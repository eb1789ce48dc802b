// credential-endpoints.ts: services on loopback that give temporary credentials: a container endpoint, instance metadata
// (version 2), and a token service. All return the credentials of the test.

import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export type Handed = { accessKeyId: string; secretAccessKey: string; sessionToken: string; expiration: Date }

export type CredentialEndpoints = {
  url: string
  /** `METHOD path`, with the token or the authorization of the request. */
  asked: { what: string; token: string; body: string }[]
  hand(next: Handed): void
  /** Answers every request with this status from now on; null: normal answers; `mute`: none. */
  fail(status: number | 'mute' | null): void
  /** Connections. */
  open(): number
}

export function handed(name: string, expiration: Date): Handed {
  return {
    accessKeyId: `ASIA${name}`,
    secretAccessKey: `secret of ${name}`,
    sessionToken: `token-of-${name}`,
    expiration,
  }
}

export async function startCredentialEndpoints(first: Handed): Promise<CredentialEndpoints> {
  let present = first
  let failing: number | 'mute' | null = null
  let open = 0
  const asked: CredentialEndpoints['asked'] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (part: Buffer) => (body += part.toString('latin1')))
    request.on('end', () => {
      const { headers, method, url = '' } = request
      const token = headers.authorization ?? one(headers['x-aws-ec2-metadata-token']) ?? ''
      asked.push({ what: `${method} ${url}`, token, body })
      if (failing === null) answer(request, response, body, present)
      else if (failing !== 'mute') response.writeHead(failing).end('{}')
    })
  })
  server.on('connection', (socket) => {
    open += 1
    socket.once('close', () => (open -= 1))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    hand: (next) => void (present = next),
    fail: (status) => void (failing = status),
    open: () => open,
  }
}

const rolePath = '/latest/meta-data/iam/security-credentials/'

function answer(
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
  body: string,
  now: Handed,
): void {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = now
  const until = expiration.toISOString()
  const keys = {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: sessionToken,
    Expiration: until,
  }
  if (method === 'PUT' && url === '/latest/api/token') response.end('imds-token')
  else if (url === rolePath) response.end('depot-role')
  else if (url.startsWith(rolePath)) response.end(JSON.stringify({ Code: 'Success', ...keys }))
  else if (url === '/container') response.end(JSON.stringify(keys))
  else if (method === 'POST' && body.includes('Action=AssumeRoleWithWebIdentity')) {
    response.setHeader('content-type', 'text/xml')
    response.end(
      '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">' +
        '<AssumeRoleWithWebIdentityResult><Credentials>' +
        `<AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey>` +
        `<SessionToken>${sessionToken}</SessionToken><Expiration>${until}</Expiration></Credentials>` +
        '<AssumedRoleUser><AssumedRoleId>A:B</AssumedRoleId><Arn>arn:aws:sts::123456789012:assumed-role/r/s</Arn>' +
        '</AssumedRoleUser></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>',
    )
  } else response.writeHead(404).end()
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
