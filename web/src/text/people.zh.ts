import type { account as accountEn, apps as appsEn, people as peopleEn, usage as usageEn } from "./people.en";

const n = (count: number, unit: string) => `${count.toLocaleString("zh-CN")} ${unit}`;

export const apps: typeof appsEn = {
  title: "应用商店", count: (count) => n(count, "个应用"), filter: "筛选应用", noneMatch: "没有名称匹配的应用。",
  empty: "还没有可用的应用", emptyHint: "应用是别人准备好的会话，带有文件、知识和设置。应用的管理者会把它展示给您。",
  emptyAdmin: "应用是您为他人准备的会话：带有起始文件、可查阅的知识和智能体设置。新建一个，或从示例开始：",
  new: "新建应用", name: "名称", nameHint: "a–z、数字和 . _ - ；不可更改。", appTitle: "标题", description: "用途", icon: "图标", iconHint: "一个符号，或 data:image/png 地址。",
  created: (name) => `应用 ${name} 已注册。`, start: "开始会话", canUse: "您可以使用", canNotUse: "您不能使用", seen: "可见原因", used: "使用", open: "打开应用",
  enabled: "已启用", disabled: "已停用", enable: "启用", disable: "停用", wasDisabled: (name) => `${name} 已停用：无法再开始会话。`, wasEnabled: (name) => `${name} 已启用。`,
  owner: "负责人", tabs: "应用的各部分", overview: "概览", config: "配置", knowledge: "知识库", manifests: "清单", secrets: "密钥", visibility: "可见范围",
  project: "应用的项目", defaultProject: "default", tree: "文件", registered: "注册于", changed: "修改于", edit: "修改描述",
  saved: "已保存。",
  layers: { app: "应用", project: "项目", user: "您的", run: "运行" },
  effective: "对您生效的配置", effectiveHint: "后面的层覆盖前面的层：应用、项目、您自己。每个值都标明来自哪一层。",
  noConfig: "没有配置：使用服务器默认值。", value: "值", setting: "设置", from: "来自", layer: "层", version: (count) => `版本 ${count}`, unset: "未设置", editLayer: (layer) => `编辑：${layer}`,
  theRest: "其余内容（JSON）", theRestHint: "mcp_servers、skills、commands、limits、budgets、timeouts、environment、workspace_kind", inherit: "同上一层", notJson: "这不是 JSON 对象。",
  moved: "期间有人修改了这一层。请关闭后查看，再重新编辑。",
  settings: { provider: "智能体程序", model: "模型", profile: "自主程度", landing: "改动如何落地", system_prompt: "系统提示词" },
  sealed: "已密封", missing: "尚未存储", history: "版本", by: "由",
  kbNone: "没有知识库", kbNoneHint: "知识库是应用文件树中的文件夹，智能体在 .kb/ 读取。", kbNew: "新建知识库", tags: "标签", tagsHint: "以空格分隔。", allTags: "全部标签", prefix: "文件位于", remove: "移除",
  kbRemoved: (name) => `${name} 已从列表移除；文件仍在。`, kbSaved: (name) => `${name} 已保存。`,
  manifestsNone: "没有清单", manifestsNoneHint: "清单说明会话文件夹由什么组成。在终端发布：", number: "#", published: "发布于", snapshot: "文件快照", latest: "最新", show: "查看",
  compare: "比较", compareWith: (a, b) => `${a} → ${b}`, same: "除版本外两者相同。", field: "字段", old: "之前", newValue: "之后", nothing: "无",
  secretsNone: "此层没有密钥", secretsHint: "密封存储，不再显示。配置只引用名称，值只进入沙箱。", secretNew: "存储密钥", secretValue: "值", secretSaved: (name) => `${name} 已密封存储。`, secretRemoved: (name) => `${name} 已删除。`, secretName: "名称",
  visibilityHint: "满足任意一条即可看到应用。都没有时只有管理员可见。使用还需要 use_app 权限。", departments: "部门", roles: "角色", members: "人员", onePerLine: "每行一个。", manageOnly: "只有应用的管理者能看到。",
  appSession: "应用",
};

export const people: typeof peopleEn = {
  title: "人员", roles: "角色", usage: "用量", intro: "谁可以登录。独自在本机工作时，除您之外无需账号。", new: "邀请", empty: "只有您", emptyHint: "有其他人使用此服务器时再邀请。",
  person: "人员", login: "登录名", slug: "路径中的名称", slugHint: "不可更改；留空则取自登录名。", displayName: "显示名称", email: "电子邮件", department: "部门", noDepartment: "无", service: "服务账号：只有令牌，不登录", member: "可使用展示给他们的所有应用",
  state: "状态", active: "有效", disabled: "已停用", serviceChip: "服务", owner: "所有者", since: "创建于",
  invite: "邀请链接", reset: "重置密码", disable: "停用", enable: "启用", logout: "全部退出登录", change: "修改", actions: "操作", saved: "已保存。",
  disabledToast: (who) => `${who} 已停用：登录、令牌和会话将在一秒内结束。`, enabledToast: (who) => `${who} 可以再次进入。`, loggedOut: (count) => `已退出 ${n(count, "个浏览器")}。`,
  linkTitle: (who) => `给 ${who} 的链接`, linkHint: "只能使用一次。请发给本人；之后不再显示。", until: "有效至", resetTitle: (who) => `重置 ${who} 的密码？`, resetHint: "旧密码立即失效，所有浏览器退出登录。",
  departments: "部门", departmentsHint: "应用可以展示给部门。", newDepartment: "新建部门", departmentName: "名称", departmentTitle: "标题", people: (count) => n(count, "人"), removed: (name) => `部门 ${name} 已移除。`, remove: "移除", all: "所有部门", noDepartments: "还没有部门。",
  bindings: "谁有什么角色", bindingsHint: "角色在范围内有效：platform、app:名称、project:名称、user:名称 或 department:名称。", role: "角色", scope: "范围", grant: "授予角色", granted: "授予者", revoke: "收回", noBindings: "还没有人有角色。", grantedToast: (who, role) => `${who} 已有角色 ${role}。`, revokedToast: (who, role) => `${who} 不再有角色 ${role}。`, already: "原本就是如此。",
  explain: "某人能否这样做？", explainIt: "说明", explainHint: "答案会说明由哪个角色决定。令牌可能允许更少。", action: "操作", allowed: "允许", denied: "不允许", gives: "各角色的权限", rights: "权限", inScope: "于",
  roleNames: { platform_admin: "platform_admin", app_admin: "app_admin", project_admin: "project_admin", member: "member" },
};

export const usage: typeof usageEn = {
  title: "用量", by: "按", groups: { person: "人员", project: "项目", model: "模型", day: "日期" }, since: "自", until: "至", requests: "请求", input: "输入令牌", output: "输出令牌", cacheRead: "读缓存", cacheWrite: "写缓存", cost: "费用", share: "占比", total: "合计",
  empty: "这些天没有请求模型", emptyHint: "智能体对模型的请求及费用在此统计。请选择其他日期，或开始会话。", budgets: "本月预算", subject: "对象", limit: "上限", spent: "已用", noBudgets: "没有预算。可在终端设置：", thisMonth: "本月",
};

export const account: typeof accountEn = {
  title: "您的账号", menu: "账号", who: "您是", may: "此登录可以", password: "密码", passwordHint: "其他浏览器都会退出登录。", old: "旧密码", new: "新密码，至少 10 个字符", again: "再次输入新密码", different: "两次输入不一致。", change: "修改密码", changed: (count) => `密码已修改；已退出其他 ${n(count, "个浏览器")}。`,
  tokenOnly: "您用令牌或登录链接进入，没有密码。可在人员页面为他人创建账号。", everywhere: "全部退出登录", everywhereHint: "所有使用您登录的浏览器都要重新登录，包括此处。令牌不受影响。", roles: "您的角色", noRoles: "您没有自己的角色。", yourself: "账号", owner: "此服务器的所有者",
};
