// proxy.ts: selects the proxy for a service, if any.
//
// `environment` uses HTTPS_PROXY for https and HTTP_PROXY for http, each also in lower case, which wins; and
// NO_PROXY: names (with their subdomains), addresses, networks such as 10.0.0.0/8, each with or without a
// port, or `*`. A proxy of the environment is never used for this machine. A proxy of the config is always
// used.

import { BlockList, isIP, isIPv4 } from 'node:net'
import { assertNever } from '../std/assert.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { readUrl } from '../std/given-url/given-url.ts'
import type { ProxyOptions } from './delivery-options.ts'

export type Proxy = {
  /** http:// or https://, without a user. */
  url: string
  /** Value of Proxy-Authorization; null for none. */
  authorization: string | null
}

export type Environment = Readonly<Record<string, string | undefined>>

export const httpProtocols = ['http:', 'https:']
const variables = ['http_proxy', 'https_proxy', 'no_proxy'] as const

/** Null for a direct connection. Throws CONFIG_INVALID for a variable that names no proxy. */
export function proxyFor(baseUrl: string, options: ProxyOptions, env: Environment): Proxy | null {
  switch (options.from) {
    case 'none':
      return null
    case 'config': {
      const { url, auth } = options
      return { url, authorization: auth === null ? null : basic(auth.user, auth.password.reveal()) }
    }
    case 'environment': {
      const url = new URL(baseUrl)
      const [name, value] = variableFor(url.protocol, env)
      if (value === '' || isLoopback(url) || isExcepted(url, env)) return null
      return readProxy(name, value)
    }
    default:
      return assertNever(options)
  }
}

/** The same as environment variables, for libraries that read them. Throws as proxyFor(). */
export function proxyEnvironment(options: ProxyOptions, env: Environment): Environment {
  switch (options.from) {
    case 'none':
      return {}
    case 'config': {
      const url = new URL(options.url)
      if (options.auth !== null) {
        url.username = encodeURIComponent(options.auth.user)
        url.password = encodeURIComponent(options.auth.password.reveal())
      }
      return { HTTP_PROXY: url.href, HTTPS_PROXY: url.href }
    }
    case 'environment':
      for (const protocol of httpProtocols) {
        const [name, value] = variableFor(protocol, env)
        if (value !== '') readProxy(name, value)
      }
      return Object.fromEntries(variables.map((name) => [name, env[name] ?? env[name.toUpperCase()]]))
    default:
      return assertNever(options)
  }
}

/** Whether the URL is on this machine. */
export function isLoopback(url: URL): boolean {
  const host = hostOf(url)
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

function variableFor(protocol: string, env: Environment): [name: string, value: string] {
  const name = protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  for (const one of [name, name.toUpperCase()]) {
    const value = env[one]?.trim()
    if (value) return [one, value]
  }
  return [name, '']
}

function readProxy(name: string, value: string): Proxy {
  const text = value.includes('://') ? value : `http://${value}`
  const given = readUrl(text, httpProtocols)
  if (typeof given === 'string')
    throw new GatewayError('CONFIG_INVALID', {
      what: `The environment variable ${name} is not a valid proxy.`,
      why: `It ${given}. An example is http://proxy.example.com:3128. SOCKS is not supported.`,
      act: 'Correct it in the unit file or shell that starts the gateway, or set `delivery.proxy` in the config.',
    })
  const { url, user, password } = given
  return { url: url.origin, authorization: user === '' ? null : basic(user, password) }
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

function isExcepted(url: URL, env: Environment): boolean {
  const list = (env['no_proxy'] ?? env['NO_PROXY'] ?? '').split(/[\s,]+/).filter((entry) => entry !== '')
  return list.some((entry) => matches(entry.toLowerCase(), url))
}

function matches(entry: string, url: URL): boolean {
  if (entry === '*') return true
  const host = hostOf(url)
  const family = isIP(host)
  const [, network = '', bits = ''] = /^([^/]+)\/(\d+)$/.exec(entry) ?? []
  if (network !== '') return family !== 0 && isWithin(host, network, Number(bits))
  if (isIP(entry) !== 0) return entry === host
  const [, named = '', port = ''] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(entry) ?? []
  if (port !== '' && Number(port) !== portOf(url)) return false
  const name = withoutBrackets(named).replace(/^\*?\./, '')
  return name !== '' && (host === name || (family === 0 && host.endsWith(`.${name}`)))
}

function isWithin(address: string, network: string, bits: number): boolean {
  const family = isIP(network)
  if (family === 0 || family !== isIP(address) || bits > (family === 4 ? 32 : 128)) return false
  const type = family === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(network, bits, type)
  return list.check(address, type)
}

export function portOf({ protocol, port }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

/** A name or an address. */
export function hostOf({ hostname }: URL): string {
  return withoutBrackets(hostname)
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}
