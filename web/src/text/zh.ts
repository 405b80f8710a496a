import type { Messages } from "./en";
import { account, apps, people, usage } from "./people.zh";
import { example, inbox, sessions } from "./sessions.zh";

const n = (count: number, unit: string) => `${count.toLocaleString("zh-CN")} ${unit}`;

export const zh: Messages = {
  nav: {
    main: "主导航", sessions: "会话", projects: "项目", review: "评审", inbox: "收件箱", store: "应用商店", admin: "管理",
    skip: "跳到正文", palette: "搜索或跳转", menu: "账户与设置", collapse: "收窄导航", expand: "展开导航",
  },
  common: {
    loading: "加载中", retry: "重试", cancel: "取消", close: "关闭", undo: "撤销", save: "保存", edit: "编辑",
    more: "显示更多", copyLink: "复制链接", copied: "链接已复制", download: "下载", create: "创建", delete: "删除",
    rename: "重命名", open: "打开", back: "返回", now: "现在", justNow: "刚刚", name: "名称", search: "搜索",
    reload: "重新加载", dismiss: "知道了", filter: "筛选", clear: "清除", all: "全部", none: "无", apply: "应用", copy: "复制",
  },
  live: { live: "实时", connecting: "连接中", lost: (age) => `正在重连，内容已有 ${age}`, offline: "服务器没有响应，看到的内容可能已过时。" },
  login: {
    title: "登录", intro: "未登录时本页不显示任何内容。", how: "打开 `contextbase up` 打印的地址，或在服务器上再生成一个：",
    paste: "或粘贴令牌", token: "令牌", submit: "登录", expired: "登录已失效。重新登录后仍停留在本页。", logout: "退出登录",
    name: "登录名", password: "密码", withToken: "用令牌登录", withProvider: (name) => `使用 ${name} 登录`, choose: "设置密码", newPassword: "新密码，至少 10 个字符",
    chooseHint: "您收到了邀请，或您的密码已被重置。此地址只能使用一次。",
  },
  errors: {
    title: "操作没有成功", notFound: "这里什么也没有", notFoundHint: "它已被删除、改名，或您无权查看。", forbidden: "您无权这样做",
    purged: "此内容已被清除", purgedHint: "历史记录仍在，内容已永久删除。", busy: (seconds) => `服务器繁忙，${seconds} 秒后可以重试。`,
    deletedByOther: "刚刚有人删除了这个文件。", crashed: "页面出错了",
  },
  theme: { title: "主题", system: "跟随系统", light: "浅色", dark: "深色" },
  language: { title: "语言" },
  palette: {
    title: "命令面板", placeholder: "页面、项目、文件或操作…", empty: "没有匹配项。", pages: "页面", projects: "项目", files: "文件", actions: "操作",
    searchFor: (q) => `在内容中搜索“${q}”`,
  },
  shortcuts: {
    title: "键盘快捷键", palette: "命令面板", help: "本列表", nextItem: "下一项", previousItem: "上一项", goProjects: "前往项目", goReview: "前往评审", goSessions: "前往会话", goInbox: "前往收件箱", goStore: "前往应用商店",
    everywhere: "全局", here: "本页", then: "然后",
  },
  projects: {
    title: "项目", count: (count) => n(count, "个项目"), new: "新建项目", name: "名称", description: "它是关于什么的？",
    nameHint: "小写字母、数字和 . _ - ；以字母或数字开头。", empty: "还没有项目", emptyHint: "项目是一棵带版本的文件树。先新建一个，再把文件拖进来，或导入一个文件夹：",
    filter: "筛选项目", created: (name) => `已创建项目 ${name}。`, commits: (count) => n(count, "次提交"), noCommits: "空", noneMatch: "没有名称匹配的项目。",
  },
  project: {
    files: "文件", log: "历史", compare: "比较", search: "搜索", workspaces: "智能体", settings: "权限", audit: "审计",
    size: (files, size) => `${n(files, "个文件")} · ${size}`, agents: (count) => `${count} 个智能体在工作`, waiting: (count) => `${count} 项待评审`, import: "上传",
    importHint: "把文件或文件夹拖到本页任意位置", downloadAll: "下载为压缩包", tabs: "项目的各部分",
  },
  tree: {
    label: "文件", empty: "还没有文件", emptyHint: "把文件或文件夹拖到这里，新建文件，或在终端导入文件夹：", newFile: "新建文件", newFolder: "新建文件夹",
    filter: "按名称查找文件", loading: "正在加载文件", noneMatch: "没有这个名称的文件。", pathPrompt: "路径", newFileTitle: "新建文件", newFolderTitle: "新建文件夹",
    collapseAll: "折叠所有文件夹", more: "继续加载…", refreshed: "重新加载文件",
  },
  file: {
    version: (number) => `第 ${number} 版`, blame: "逐行追溯", compare: "比较…", edit: "编辑", history: "版本", history2: "此文件的版本", inReview: (count) => `${count} 项待评审`,
    choose: "请选择文件", chooseHint: "文件在左侧；按 Ctrl K 可按名称查找。", folder: "这是一个文件夹", binary: "此文件不是文本", image: "图片", size: "大小", type: "类型",
    symlink: "链接到", executable: "可执行", message: "改了什么？（可选）", saving: "保存中…", editing: "编辑中", discard: "放弃修改",
    deleted: (path) => `已删除 ${path}。`, renamed: (path) => `现位于 ${path}。`, renameTitle: "重命名或移动", newPath: "新路径", atSnapshot: (seq) => `#${seq} 时的内容`, backToNow: "回到现在",
    restore: "恢复此版本…", lineLink: "行", sideVersions: "搁置的版本", gone: (seq) => `在 #${seq} 时此文件不存在。`, emptyFile: "此文件为空。", contents: "文件内容", unsaved: "有未保存的修改",
    page: (page, all) => `第 ${page} / ${all} 页`, copyPath: "复制路径", pathCopied: "路径已复制",
  },
  outcome: {
    written: "已写入", merged: "已合并", unchanged: "无变化", superseded: "已被取代", in_review: "待评审", refused: "已拒绝", added: "新增", changed: "修改", renamed: "改名", deleted: "删除", removed: "移除",
    saved: (path) => `${path} 已保存。`, savedMerged: (path) => `${path} 已保存，并与他人的修改合并。`, waits: (path) => `您对 ${path} 的修改与他人冲突，正等待评审。`, refusedBecause: (why) => `已拒绝：${why}`,
    nothing: (path) => `${path} 内容相同，无需修改。`, undone: "已撤销。", undoneMore: "已撤销。有些地方他人已在其上修改，正等待评审。",
  },
  log: {
    conversation: "对话",
    title: "历史", empty: "还没有提交", emptyHint: "每次被接受的修改都会显示在这里：谁做的，与什么合并。", filterPath: "路径", filterWho: "谁", filterRun: "运行", changes: (count) => n(count, "处修改"),
    moreChanges: (count) => `另有 ${count.toLocaleString("zh-CN")} 处`, mergedWith: (seqs) => `与 ${seqs} 合并`, undo: "撤销…", diff: "改动", browse: "浏览", rollback: "回滚到这里…", noneMatch: "没有符合条件的提交。", noMessage: "无说明",
  },
  undo: {
    title: (what) => `撤销 ${what}`, rollbackTitle: (seq) => `回滚到 #${seq}`, commit: (seq) => `#${seq}`, intro: "他人之后的修改会保留。不会丢失任何内容：撤销也是一次提交，可以再撤销。",
    rollbackIntro: "以一次新提交把一切恢复到当时。不会丢失任何内容：可以再撤销。", nothing: "没有可改动的：可能已撤销，或之后又有修改。", contested: (count) => `${n(count, "个文件")}将等待评审，因为他人在其上做了修改`,
    files: (count) => `${n(count, "个文件")}会改变`, do: "撤销", doRollback: "回滚", done: (seq) => `完成，见 #${seq}。`, preview: "预览",
  },
  compare: {
    title: "比较", from: "从", to: "到", head: "现在", same: "两个快照相同。", files: (count) => n(count, "个文件"), onlyPath: "仅限路径", empty: "请选择两个快照", emptyHint: "可用编号（如 12）、标签、时间（如 2026-01-31T12:00）或 head。",
    binary: "不是文本，只比较大小。", swap: "互换", sizes: (a, b) => `${a} → ${b}`, unified: "单栏", sideBySide: "并排", old: "之前", new: "之后", expandAll: "全部展开", collapseAll: "全部折叠",
  },
  time: { title: "时光机", now: "现在", hint: "拖动查看当时的项目；按住 Shift 拖动可比较", at: (seq) => `#${seq.toLocaleString("zh-CN")}`, older: "更早", slider: "快照", none: "还没有历史。" },
  search: {
    title: "搜索", placeholder: "文件中的文字", regex: "正则表达式", ignoreCase: "忽略大小写", wholeWord: "整词", glob: "仅限文件", globHint: "*.md, docs/**", files: (count, lines) => `${n(count, "个文件")}，${n(lines, "行")}`,
    none: "没有找到", noneHint: "检查拼写，或忽略大小写。", names: "名称", contents: "内容", empty: "搜索名称和内容", emptyHint: "结果链接到被搜索快照中的那一行。", stopped: "还有更多。", skipped: (count) => `${n(count, "个文件")}无法搜索。`,
  },
  upload: {
    title: "上传中", done: (count) => `已上传 ${n(count, "个文件")}`, waiting: (count) => `${n(count, "个文件")}待评审`, failed: (count) => `${n(count, "个文件")}被拒绝`, drop: "松开即可上传", dropInto: (folder) => `松开即上传到 ${folder}`,
    progress: (done, all) => `${done} / ${all}`, root: "项目", choose: "选择文件",
  },
  review: {
    title: "评审", open: (count) => `${count} 项待处理`, keys: "j / k 切换 · 1 2 3 选择 · e 编辑 · c 认领 · Enter 决定", empty: "没有需要您处理的", emptyHint: "两人改了同一处时，双方的内容都在这里等待，不会丢失。",
    now: "现在", before: "之前", proposed: "提议", suggested: "建议", both: "两者", result: "结果", use: (which) => `采用“${which}”`, reject: "拒绝", edit: "编辑", edited: "您的编辑", told: "作者会得知您的决定。",
    decided: (path) => `${path} 已决定。`, rejected: (path) => `已拒绝对 ${path} 的提议。`, place: (at, all) => `第 ${at} 处，共 ${all} 处`, onePlace: (path) => `${path} 中的一处；其余已自动合并`, places: (count, path) => `${path} 中的 ${count} 处；其余已自动合并`,
    whole: (path) => `整个 ${path}`, nothingThere: "无", notText: "不是文本", against: (a, b) => `${a} 对 ${b}`, by: (who) => `来自 ${who}`, claim: "认领", release: "放弃认领", takeOver: "接手", yours: "您正在处理", isOnIt: (who) => `${who} 正在处理`, claimedBy: (who) => `${who} 已认领`,
    states: { open: "待处理", resolved: "已解决", rejected: "已拒绝", obsolete: "已过时" }, state: "状态", allProjects: "所有项目", discussion: "讨论", comment: "说点什么", send: "评论",
    moved: "文件期间有变化。这是现在的比较，请重新决定。", closed: (state) => `此项已关闭：${state}。`, choose: "请先为每一处选择一方。",
    reasons: {
      critical: "修改了受保护的文件", content: "双方改了同一处", "deleted-and-changed": "一方删除了另一方修改的内容", "renamed-twice": "被改成两个名称", "file-and-folder": "文件与文件夹同名",
      "folder-not-empty": "文件夹不为空", "kind-changed": "类型发生变化",
    },
    suggestionBy: (who) => `${who} 的建议`, all: "全部采用", deletion: "删除它", list: "等待处理",
  },
  workspaces: {
    title: "工作中的智能体", empty: "现在没有智能体在此工作", emptyHint: "智能体这样打开项目的私有副本：", changed: (count) => n(count, "处未提交的修改"), none: "还没有修改", behind: (count) => `落后 ${n(count, "次提交")}`, upToDate: "已是最新",
    seen: "最近活动", machine: "机器", base: "始于", show: "改了什么", showEnded: "包括已结束的", agent: "智能体", state: "状态", commits: (count) => n(count, "次提交"),
    states: { open: "工作中", completed: "已完成", abandoned: "已放弃", lost: "已丢失" }, elsewhere: "此文件夹在另一台机器上，请在那里查看。",
  },
  access: {
    title: "权限", intro: "匹配的规则中最具体的一条生效；没有匹配时用默认值。", default: "默认", subject: "谁", pattern: "哪里", level: "可以", add: "添加规则", remove: "移除", explain: "解释", explainIntro: "某人在某路径可以做什么，由哪条规则决定？",
    path: "路径", who: "谁", because: "因为", noRules: "没有规则：处处适用默认值。", levels: { hidden: "不可见", R: "读", RA: "读、新增", "RW-": "读写，不可删除", RW: "读、写、删除" }, ruleRemoved: "规则已移除。", ruleAdded: "规则已添加。",
    merge: "合并", mergeNone: "没有合并规则：各类型按自身方式合并。",
  },
  audit: {
    title: "审计", system: "系统审计", who: "谁", action: "操作", path: "路径", via: "入口", when: "时间", what: "内容", empty: "没有符合条件的记录", emptyHint: "修改或清除筛选条件。", export: "导出为 JSON 行", since: "自", until: "至",
  },
  admin: {
    health: "健康", tokens: "令牌", audit: "审计", database: "数据库", blobs: "对象存储", ok: "正常", server: "服务器", version: "版本", chores: "例行任务", leader: "执行者", lastRun: "上次运行", result: "结果", never: "从未", you: "您",
    notAdmin: "只有管理员能看到此页。", alive: "有响应", dead: "无响应", every: "任务", failed: "失败", seconds: "秒",
    doctor: {
      title: "这台机器上什么可用", checked: "检查于", again: "重新检查", advice: "怎么办：",
      groups: { broken: "必需，但不可用", no: "这里没有；没有它 contextbase 也能工作", yes: "可用" },
      names: {
        database: "数据库", s3: "存放大文件的存储桶", "data folder": "数据文件夹", overlay: "智能体的文件夹", reflink: "共享数据块的文件", quota: "文件夹大小上限",
        sandbox: "沙箱", bubblewrap: "bubblewrap", docker: "Docker", git: "git", machines: "机器", sessions: "会话的文件",
      },
    },
  },
  tokens: {
    title: "令牌", intro: "智能体、适配器和人都凭令牌进入。令牌只显示一次。", create: "新建令牌", name: "给谁", kind: "类型", actions: "可以", expires: "到期", revoke: "吊销", revoked: "已吊销", expired: "已过期", project: "项目", any: "所有项目",
    days: "天数", created: "令牌已生成。请现在复制，之后不再显示。", empty: "没有令牌", revokedToast: (who) => `已吊销 ${who} 的令牌。`, made: "创建于", active: "有效",
  },
  sessions, inbox, example, account, apps, people, usage,
  count: (count, one) => n(count, one),
};
