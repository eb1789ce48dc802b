// compile-extracts.ts: `extract` of a source, with the keys that it opens boxes with.

import type { SourceConfig } from '../config.ts'
import type { DeviceRule } from '../devices/device-rule.ts'
import { compileExtract, compileExtractor } from '../extract/extract.ts'
import { createOtherControllers } from '../extract/other-controllers.ts'
import { compileKeys, type KeysFor } from '../extract/secretbox.ts'
import type { SourcePlan } from './source-plan.ts'
import type { Scope } from './compile-scope.ts'

type Extracts = Pick<SourcePlan, 'extract' | 'otherControllers'>

/** Undefined where a problem was reported. `device`: undefined where its rule has one. */
export function compileExtracts(
  source: SourceConfig,
  device: DeviceRule | undefined,
  scope: Scope,
): Extracts | undefined {
  const { name, extract: entries } = source
  const keysFor = keysOf(source, device, scope)
  if (entries.length === 0) return { extract: null, otherControllers: null }
  const others = entries.some(({ as }) => as === 'j1939') ? createOtherControllers(name, entries) : null
  const extractors = entries.map((entry, index) =>
    scope.compile(['extract', index], () =>
      compileExtractor(entry, scope.captures, {
        keysFor,
        onOther: (other) => others?.add(entry.into, other),
      }),
    ),
  )
  const sound = extractors.filter((extractor) => extractor !== undefined)
  if (sound.length < extractors.length) return undefined
  const extract = compileExtract(sound)
  if (others === null) return { extract, otherControllers: null }
  return {
    extract: (record, root, captures, up) => {
      others.begin()
      return extract(record, root, captures, up)
    },
    otherControllers: others,
  }
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
