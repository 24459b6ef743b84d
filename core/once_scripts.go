package core

import "github.com/holdfast-go/holdfast/core/internal/lockscript"

// The scripts of Once.
var (
	onceBeginScript    = lockscript.Load("once_begin_fast", "once_common", "group", "once_begin")
	onceRenewScript    = lockscript.Load("once_common", "once_renew")
	onceEnlistScript   = lockscript.Load("once_common", "group", "once_enlist")
	onceDeclareScript  = lockscript.Load("once_common", "once_declare")
	onceCompleteScript = lockscript.Load("publish", "once_common", "group", "once_finish_common", "once_complete")
	onceHoldScript     = lockscript.Load("publish", "once_common", "group", "once_finish_common", "once_hold")
	onceReleaseScript  = lockscript.Load("publish", "once_common", "group", "once_release")
	onceResolveScript  = lockscript.Load("publish", "once_common", "group", "once_finish_common", "once_resolve")
	onceForgetScript   = lockscript.Load("publish", "once_common", "once_forget")
	oncePeekScript     = lockscript.Load("once_common", "once_peek")
	onceListScript     = lockscript.Load("once_list")
)
