// compile-extracts.ts: `extract` of a source, with the keys that it opens boxes with.

import type { SourceConfig } from '../config.ts'
import type { DeviceRule } from '../devices/device-rule.ts'
import { compileExtract, compileExtractor, type Extract } from '../extract/extract.ts'
import { compileKeys, type KeysFor } from '../extract/secretbox.ts'
import type { Scope } from './compile-scope.ts'

/**
 * Null where there is none; undefined where a problem was reported. `device`: undefined where its rule has
 * one.
 */
export function compileExtracts(
  source: SourceConfig,
  device: DeviceRule | undefined,
  scope: Scope,
): Extract | null | undefined {
  const { extract: entries } = source
  const keysFor = keysOf(source, device, scope)
  if (entries.length === 0) return null
  const extractors = entries.map((entry, index) =>
    scope.compile(['extract', index], () => compileExtractor(entry, scope.captures, keysFor)),
  )
  const sound = extractors.filter((extractor) => extractor !== undefined)
  return sound.length < extractors.length ? undefined : compileExtract(sound)
}

/** Without keys nothing is opened; the same where a problem was reported. */
function keysOf(
  { keys, extract }: SourceConfig,
  device: DeviceRule | undefined,
  { compile, report }: Scope,
): KeysFor {
  const none: KeysFor = () => []
  if (keys === undefined) return none
  if (!extract.some(({ as }) => as === 'secretbox'))
    report(['keys'], 'opens nothing: the source has no entry of `extract` with `as: secretbox`.')
  return compile(['keys'], () => compileKeys(keys, device)) ?? none
}
