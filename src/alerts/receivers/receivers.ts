// receivers.ts: makes receivers and heartbeats from the config. Entry file of this folder.
//
//   webhook        an HTTP request, signed with a shared secret (webhook.ts)
//   email          a mail through an SMTP relay
//   command-hook   a program on this machine
//   http-request   one request, also of heartbeats
//   name-lookup    resolves names, and leaves threads for the spool
//   failure-text   why one was not reached; hidden-text keeps secrets out of it
//
// Every receiver tries once, within the time that it gets, and reports how that ended as a value. When and
// how often is decided in ../alert-sender.ts, so a receiver has no state.

import { assertNever } from '../../std/assert.ts'
import type { Secret } from '../../std/secret.ts'
import type { Environment, ProxyOptions } from '../../delivery/delivery.ts'
import type { HeartbeatConfig, ReceiverConfig } from '../config.ts'
import type { HeartbeatRequest } from '../heartbeat.ts'
import type { AlertReceiver } from '../types.ts'
import { createCommandHook } from './command-hook.ts'
import { createEmail } from './email.ts'
import { shownTarget } from './hidden-text.ts'
import { checkHttp, loadHttpClient, sendHttp, type HttpTarget } from './http-request.ts'
import { createWebhook } from './webhook.ts'

export type ReceiverDeps = {
  env: Environment
  /** That of `delivery.proxy`. */
  proxy: ProxyOptions
  /** Unix time in milliseconds, as right as it is known. */
  ourTime: () => number
  gateway: () => string
}

const ports = { starttls: 587, tls: 465, none: 25 } as const

export function createReceiver(deps: ReceiverDeps, config: ReceiverConfig): AlertReceiver {
  switch (config.type) {
    case 'webhook':
      return createWebhook({
        target: httpTarget(deps, config, config.url),
        body: config.body,
        secret: config.secret ?? null,
        ourTime: deps.ourTime,
      })
    case 'email': {
      const {
        host,
        security,
        port = ports[security],
        user,
        password,
        sender,
        recipients,
        ca,
        timeout,
      } = config
      const login = user === undefined || password === undefined ? null : { user, password }
      return createEmail({
        host,
        port,
        security,
        login,
        sender,
        recipients,
        ca: ca ?? null,
        timeoutMs: timeout,
      })
    }
    case 'command':
      return createCommandHook(config.command, config.timeout)
    default:
      return assertNever(config)
  }
}

/** What identifies a target. It has secrets: only compare it. */
export function targetKey(config: ReceiverConfig): string {
  switch (config.type) {
    case 'webhook':
      return `webhook ${config.url.reveal()}`
    case 'email':
      return `email ${config.host} ${config.recipients.toSorted().join(' ')}`
    case 'command':
      return `command ${JSON.stringify(config.command)}`
    default:
      return assertNever(config)
  }
}

/** As targetKey(). */
export function heartbeatKey({ url, unhealthy_url: other }: HeartbeatConfig): string {
  return `${url.reveal()} ${other?.reveal() ?? ''}`
}

export function createHeartbeatRequest(deps: ReceiverDeps, config: HeartbeatConfig): HeartbeatRequest {
  const { url, unhealthy_url: unhealthyUrl, method } = config
  const target = httpTarget(deps, config, url)
  const otherTarget = unhealthyUrl === undefined ? null : httpTarget(deps, config, unhealthyUrl)
  return {
    target: shownTarget(url.reveal()),
    timeoutMs: config.timeout,
    hasUnhealthyUrl: otherTarget !== null,
    send({ verdict, sentence }, isHealthy, ends) {
      const body = method === 'POST' ? `${deps.gateway()}: ${verdict}. ${sentence}\n` : null
      const headers: Record<string, string> =
        body === null ? {} : { 'content-type': 'text/plain; charset=utf-8' }
      return sendHttp(isHealthy ? target : (otherTarget ?? target), { method, headers, body }, ends)
    },
    check: (ends) => checkHttp(target, ends),
  }
}

type HttpConfig = Pick<HeartbeatConfig, 'headers' | 'ca' | 'proxy' | 'timeout'>

function httpTarget({ env, proxy }: ReceiverDeps, config: HttpConfig, url: Secret): HttpTarget {
  loadHttpClient()
  return {
    url,
    // In lower case, so that one replaces what the gateway would send.
    headers: new Map(
      Object.entries(config.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
    ),
    ca: config.ca ?? null,
    timeoutMs: config.timeout,
    proxy: config.proxy === 'none' ? { from: 'none' } : proxy,
    env,
  }
}
